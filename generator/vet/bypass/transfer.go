package bypass

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/ast/inspector"
)

// transfer is a value on its way to a target, such as an argument on its way to a parameter.
type transfer struct {
	value ast.Expr   // a call with several results stands for each of them
	from  types.Type // the type of the value
	target
}

// target is where a value goes.
type target struct {
	to types.Type // nil for the blank identifier

	// owner is the *types.Var of a variable, parameter or field, or the *types.Func or *ast.FuncLit whose result this is. It is
	// nil for other targets, such as the elements of a literal.
	owner any
}

// transfers returns the values that a node moves to targets.
func (c *checker) transfers(at inspector.Cursor) []transfer {
	switch n := at.Node().(type) {
	case *ast.CallExpr:
		return c.pairs(n.Args, c.params(n))
	case *ast.AssignStmt:
		return c.pairs(n.Rhs, c.targets(n.Lhs))
	case *ast.ValueSpec:
		var targets []target
		for _, name := range n.Names {
			targets = append(targets, c.target(name))
		}
		return c.pairs(n.Values, targets)
	case *ast.RangeStmt: // the elements of n.X move to the variables
		return []transfer{{n.X, nil, target{owner: c.variable(n.Key)}}, {n.X, nil, target{owner: c.variable(n.Value)}}}
	case *ast.ReturnStmt:
		return c.pairs(n.Results, c.results(at))
	case *ast.CompositeLit:
		return c.elements(n)
	case *ast.SendStmt:
		if ch, ok := c.TypesInfo.TypeOf(n.Chan).Underlying().(*types.Chan); ok {
			return c.pairs([]ast.Expr{n.Value}, []target{{ch.Elem(), c.variable(n.Chan)}})
		}
	}
	return nil
}

// pairs returns the transfers of values to the targets of the same index. A single call may have a result for each target.
func (c *checker) pairs(values []ast.Expr, targets []target) (all []transfer) {
	if len(values) == 0 {
		return nil
	}
	results, isCall := c.TypesInfo.TypeOf(values[0]).(*types.Tuple)
	for i, p := range targets {
		switch {
		case isCall && i < results.Len():
			all = append(all, transfer{values[0], results.At(i).Type(), p})
		case !isCall && i < len(values):
			all = append(all, transfer{values[i], c.TypesInfo.TypeOf(values[i]), p})
		}
	}
	return all
}

// params returns the targets of the arguments of a call.
func (c *checker) params(call *ast.CallExpr) (all []target) {
	t := c.TypesInfo.TypeOf(call.Fun)
	if c.TypesInfo.Types[call.Fun].IsType() {
		return []target{{to: t}}
	}
	sig, ok := t.Underlying().(*types.Signature)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	declared := sig.Params()
	if fn := c.callee(call); fn != nil && fn.Signature().Params().Len() == declared.Len() { // false for (*T).Method
		declared = fn.Signature().Params() // those of the declaration, even if sig is an instance of it
	}
	for i := range sig.Params().Len() {
		all = append(all, target{sig.Params().At(i).Type(), declared.At(i)})
	}
	if !sig.Variadic() || call.Ellipsis.IsValid() {
		return all
	}
	n := len(call.Args)
	if results, ok := c.TypesInfo.TypeOf(call.Args[0]).(*types.Tuple); ok {
		n = results.Len()
	}
	return spread(all, n)
}

// spread repeats the last parameter, which is variadic, until there are n.
func spread(params []target, n int) []target {
	last := params[len(params)-1]
	if list, ok := last.to.Underlying().(*types.Slice); ok { // false for append([]byte, string...)
		last.to = list.Elem()
	}
	for params = params[:len(params)-1]; len(params) < n; {
		params = append(params, last)
	}
	return params
}

// results returns the results of the innermost function around a node.
func (c *checker) results(at inspector.Cursor) (all []target) {
	for around := range at.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		owner := any(around.Node())
		var sig *types.Signature
		switch f := around.Node().(type) {
		case *ast.FuncDecl:
			fn := c.TypesInfo.Defs[f.Name].(*types.Func)
			owner, sig = fn, fn.Signature()
		case *ast.FuncLit:
			sig = c.TypesInfo.TypeOf(f).(*types.Signature)
		}
		for v := range sig.Results().Variables() {
			all = append(all, target{v.Type(), owner})
		}
		break
	}
	return all
}

// elements returns the values in a literal of a struct, list or map.
func (c *checker) elements(lit *ast.CompositeLit) (all []transfer) {
	t := c.TypesInfo.TypeOf(lit).Underlying()
	if p, ok := t.(*types.Pointer); ok { // an element &T{} of a list, written {}
		t = p.Elem().Underlying()
	}
	add := func(e ast.Expr, to target) { all = append(all, c.pairs([]ast.Expr{e}, []target{to})...) }
	for i, value := range lit.Elts {
		pair, isPair := value.(*ast.KeyValueExpr)
		if isPair {
			value = pair.Value
		}
		switch t := t.(type) {
		case *types.Struct:
			if isPair {
				add(value, c.target(pair.Key))
			} else {
				add(value, target{t.Field(i).Type(), t.Field(i).Origin()})
			}
		case *types.Map:
			add(pair.Key, target{to: t.Key()})
			add(value, target{to: t.Elem()})
		case interface{ Elem() types.Type }: // an array or a slice
			add(value, target{to: t.Elem()})
		}
	}
	return all
}

func (c *checker) targets(all []ast.Expr) (targets []target) {
	for _, e := range all {
		targets = append(targets, c.target(e))
	}
	return targets
}

// target returns the target of a value that is assigned to e.
func (c *checker) target(e ast.Expr) target {
	if id, ok := e.(*ast.Ident); ok && id.Name == "_" {
		return target{}
	}
	return target{c.TypesInfo.TypeOf(e), c.variable(e)}
}

// variable returns the *types.Var that e names or is an element of, or nil.
func (c *checker) variable(e ast.Expr) any {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := c.TypesInfo.ObjectOf(e).(*types.Var); ok {
			return v.Origin()
		}
	case *ast.SelectorExpr:
		return c.variable(e.Sel)
	case *ast.IndexExpr:
		return c.variable(e.X)
	case *ast.StarExpr:
		return c.variable(e.X)
	}
	return nil
}
