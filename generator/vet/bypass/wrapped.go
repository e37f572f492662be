package bypass

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"
)

// isWrapped is the fact that values of a parameter or field, or of a parameter of the func that a function returns, reach a generated
// constructor.
type isWrapped struct{}

func (*isWrapped) AFact()         {}
func (*isWrapped) String() string { return "wrapped" }

// findWrapped returns the expressions whose values reach a generated constructor, and exports a fact about each parameter and field
// on their way. It follows the names in expressions and ignores the order of statements. So it may return too many expressions, and
// a bypass is missed; it does not return too few.
func (c *checker) findWrapped() []ast.Node {
	t := trace{origins: c.origins, seen: map[any]bool{}}
	for _, v := range c.wrapped {
		t.follow(v)
	}
	for _, fn := range c.wrapping {
		for param := range returned(fn).Params().Variables() {
			t.followCalls(fn, param)
		}
	}
	for owner := range t.seen {
		if v, ok := owner.(*types.Var); ok && passes(v) && v.Pkg() == c.Pkg && c.Pkg.Name() != "main" && !slices.Contains(c.wrapped, v) {
			c.ExportObjectFact(v, &isWrapped{})
		}
	}
	for owner, values := range t.from {
		if fn, ok := owner.(*types.Func); ok && returned(fn) != nil && c.Pkg.Name() != "main" && slices.ContainsFunc(values, t.isMiddleware) {
			c.ExportObjectFact(fn, &isWrapped{})
		}
	}
	return t.found
}

// isMiddleware reports whether a value is a func literal with a parameter whose values reach a generated constructor.
func (t *trace) isMiddleware(e ast.Expr) bool {
	lit, ok := ast.Unparen(e).(*ast.FuncLit)
	return ok && slices.ContainsFunc(variables(t.signature(lit).Params()), func(v *types.Var) bool { return t.seen[v] })
}

// returned returns the signature of the func that fn returns, or nil.
func returned(fn *types.Func) *types.Signature {
	if fn.Signature().Results().Len() != 1 {
		return nil
	}
	sig, _ := fn.Signature().Results().At(0).Type().Underlying().(*types.Signature)
	return sig
}

// passes reports whether v is a parameter or a field.
func passes(v *types.Var) bool { return v.Kind() == types.ParamVar || v.Kind() == types.FieldVar }

// isMadeFrom reports whether an expression mentions a value of such a type, directly or by way of variables, their parts, and functions.
func (o *origins) isMadeFrom(e ast.Expr, such func(types.Type) bool) bool {
	t := trace{origins: o, seen: map[any]bool{}, parts: o.parts}
	t.followMentioned(e)
	return slices.ContainsFunc(append(t.found, e), func(from ast.Node) bool {
		found := false
		ast.Inspect(from, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok && o.TypesInfo.Types[e].IsValue() {
				found = found || such(o.TypesInfo.TypeOf(e))
			}
			return !found
		})
		return found
	})
}

// origins says where values come from.
type origins struct {
	*checker
	from   map[any][]ast.Expr        // the values that move to each owner of a target
	parts  map[*types.Var][]ast.Expr // the values that move to fields of each variable, or that its methods get
	values []any                     // functions that are used as values, each a *types.Func or an *ast.FuncLit
	calls  []*ast.CallExpr           // of functions that this package does not declare
	named  map[string][]*types.Func  // the functions and methods of this package
}

// originsIn returns the origins of the values in the package.
func (c *checker) originsIn(root inspector.Cursor) *origins {
	o := &origins{checker: c, from: map[any][]ast.Expr{}, parts: map[*types.Var][]ast.Expr{}, named: map[string][]*types.Func{}}
	for at := range root.Preorder() {
		o.note(at)
	}
	return o
}

// trace traces values back to the expressions that they come from.
type trace struct {
	*origins
	seen  map[any]bool              // the owners that were followed
	parts map[*types.Var][]ast.Expr // those to follow, too
	found []ast.Node

	direct bool // without what containers and chains pass
}

// note records the values that a node moves, the functions that it uses as values, and the functions that it declares.
func (o *origins) note(at inspector.Cursor) {
	for _, t := range o.transfers(at) {
		if t.owner != nil {
			o.from[t.owner] = append(o.from[t.owner], t.value)
		}
		if f := o.function(t.value); f != nil {
			o.values = append(o.values, f)
		}
	}
	switch n := at.Node().(type) {
	case *ast.FuncDecl:
		fn := o.TypesInfo.Defs[n.Name].(*types.Func)
		o.named[fn.Name()] = append(o.named[fn.Name()], fn)
		if n.Type.Results != nil {
			for _, f := range n.Type.Results.List {
				for _, name := range f.Names { // a return statement need not mention named results
					o.from[fn] = append(o.from[fn], name)
				}
			}
		}
	case *ast.AssignStmt:
		for i, e := range n.Lhs {
			if e, ok := e.(*ast.SelectorExpr); ok {
				o.noteParts(e.X, n.Rhs[min(i, len(n.Rhs)-1)])
			}
		}
	case *ast.CallExpr:
		if fn := o.callee(n); fn == nil || fn.Pkg() != o.Pkg {
			o.calls = append(o.calls, n)
		}
		if e, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok {
			o.noteParts(e.X, n.Args...)
			if v := o.variable(e.X); v != nil && o.isForeign(e) { // the receiver may be a container of the arguments
				o.from[v] = append(o.from[v], n.Args...)
			}
		}
	}
}

// noteParts records values that become parts of the variables and fields that an expression selects from.
func (o *origins) noteParts(of ast.Expr, values ...ast.Expr) {
	ast.Inspect(of, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := o.TypesInfo.ObjectOf(id).(*types.Var); ok {
				o.parts[v.Origin()] = append(o.parts[v.Origin()], values...)
			}
		}
		_, isCall := n.(*ast.CallExpr)
		return !isCall
	})
}

// isForeign reports whether e is a method that another package declares.
func (o *origins) isForeign(e *ast.SelectorExpr) bool {
	s := o.TypesInfo.Selections[e]
	return s != nil && s.Kind() == types.MethodVal && s.Obj().Pkg() != o.Pkg
}

// function returns the *types.Func that e names, or e itself if it is an *ast.FuncLit, or nil.
func (o *origins) function(e ast.Expr) any {
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		return e
	case *ast.SelectorExpr:
		return o.function(e.Sel)
	case *ast.Ident:
		if fn, ok := o.TypesInfo.Uses[e].(*types.Func); ok {
			return fn.Origin()
		}
	}
	return nil
}

// follow traces the values that move to the targets of an owner.
func (t *trace) follow(owner any) {
	if t.seen[owner] {
		return
	}
	t.seen[owner] = true
	v, _ := owner.(*types.Var)
	for _, e := range slices.Concat(t.from[owner], t.parts[v]) {
		t.found = append(t.found, e)
		t.followMentioned(e)
	}
	if fn, ok := owner.(*types.Func); ok && fn.Signature().Recv() != nil && types.IsInterface(fn.Signature().Recv().Type()) {
		for _, method := range t.named[fn.Name()] { // its type may implement the interface
			if types.Identical(method.Signature(), fn.Signature()) {
				t.follow(method)
			}
		}
	}
	if v != nil && passes(v) && !t.direct {
		t.followContainer(v)
	}
}

// followMentioned traces the variables and the results that an expression mentions.
func (t *trace) followMentioned(e ast.Node) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr: // in a.sender, only the field matters
			t.followMentioned(n.Sel)
			_, isName := n.X.(*ast.Ident)
			return !isName || t.isForeign(n)
		case *ast.KeyValueExpr: // in options{sender: s}, only s matters
			if v, ok := t.variable(n.Key).(*types.Var); ok && v.IsField() {
				t.followMentioned(n.Value)
				return false
			}
		case *ast.Ident:
			switch object := t.TypesInfo.ObjectOf(n).(type) {
			case *types.Var:
				t.follow(object.Origin())
			case *types.Func:
				t.follow(object.Origin())
			}
		}
		return true
	})
}

// followContainer traces the values that a dependency injection container such as fx may pass to the parameter v. If the function of
// v is used as a value, these are the results of the same type of all functions that are used as values.
func (t *trace) followContainer(v *types.Var) {
	at := slices.IndexFunc(t.values, func(f any) bool { return slices.Contains(variables(t.signature(f).Params()), v) })
	if at < 0 {
		return
	}
	for _, f := range t.values {
		for _, result := range variables(t.signature(f).Results()) {
			if types.Identical(result.Type(), v.Type()) {
				t.follow(f)
			}
		}
	}
	t.followCalls(t.values[at], v)
}

// followCalls traces the values that a call may pass to a parameter of f: the call is one of a variable that may be f, or one of a function
// of another package that gets f, as a chain of middleware does.
func (t *trace) followCalls(f any, param *types.Var) {
	for _, call := range t.calls {
		for _, passed := range t.pairs(call.Args, t.params(call)) {
			if passed.to != nil && types.Identical(passed.to, param.Type()) && t.mayCall(call, f) {
				t.found = append(t.found, passed.value)
				t.followMentioned(passed.value)
			}
		}
	}
}

// mayCall reports whether a call may be one of f, or passes f on.
func (o *origins) mayCall(call *ast.CallExpr, f any) bool {
	parts := append([]ast.Expr{call.Fun}, call.Args...)
	if o.callee(call) == nil {
		parts = parts[:1]
	}
	return slices.ContainsFunc(parts, func(e ast.Expr) bool {
		t := trace{origins: o, seen: map[any]bool{}, direct: true}
		t.followMentioned(e)
		lit, isLit := f.(*ast.FuncLit)
		return t.seen[f] || isLit && slices.ContainsFunc(append(t.found, e), func(n ast.Node) bool { return n.Pos() <= lit.Pos() && lit.End() <= n.End() })
	})
}

func (o *origins) signature(f any) *types.Signature {
	if lit, ok := f.(*ast.FuncLit); ok {
		return o.TypesInfo.TypeOf(lit).(*types.Signature)
	}
	return f.(*types.Func).Signature()
}

func variables(t *types.Tuple) []*types.Var { return slices.Collect(t.Variables()) }
