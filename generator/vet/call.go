package vet

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// calls reports the limited methods that n, which belongs to the types in of, calls on bare values, or takes from them.
func (c *checker) calls(n ast.Node, of []*types.TypeName) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			of = c.owner(n)
		case *ast.CompositeLit, *ast.CallExpr:
			made, from := c.makes(n.(ast.Expr))
			for _, e := range from {
				c.calls(e, append(of, made))
			}
			return made == nil
		case *ast.SelectorExpr:
			c.call(n, of)
		}
		return true
	})
}

// owner returns the type that d is a method of, or else makes, if there is one.
func (c *checker) owner(d *ast.FuncDecl) []*types.TypeName {
	fn, ok := c.TypesInfo.Defs[d.Name].(*types.Func)
	if !ok {
		return nil
	}
	of := receiver(fn)
	if results := fn.Signature().Results(); of == nil && results.Len() > 0 {
		of = typeName(results.At(0).Type())
	}
	return []*types.TypeName{of}
}

// makes returns the type that e makes a value of, such as senderFunc(func(…) error {…}), and what it makes it from; nil if none.
func (c *checker) makes(e ast.Expr) (*types.TypeName, []ast.Expr) {
	object := typeName(c.TypesInfo.TypeOf(e))
	if object == nil || types.IsInterface(object.Type()) {
		return nil, nil
	}
	switch e := e.(type) {
	case *ast.CompositeLit:
		return object, e.Elts
	case *ast.CallExpr:
		if c.TypesInfo.Types[e.Fun].IsType() {
			return object, e.Args
		}
	}
	return nil, nil
}

// call reports e, which belongs to the types in of, if it is a limited method on a bare value.
func (c *checker) call(e *ast.SelectorExpr, of []*types.TypeName) {
	s := c.TypesInfo.Selections[e]
	if s == nil || s.Kind() == types.FieldVal {
		return
	}
	method := s.Obj().(*types.Func)
	bare, on := c.bareType(e.X), types.TypeString(s.Recv(), c.qualify)
	if bare != nil && types.IsInterface(s.Recv()) {
		on = types.ExprString(e.X) + ", which holds a " + types.TypeString(bare.Type(), c.qualify)
	}
	for _, object := range []*types.TypeName{bare, receiver(method)} {
		if l := c.missed(object, method, of); l != nil {
			c.ReportRangef(e.Sel, "the limits of %s do not reach this %s on %s; use what %s returns",
				c.spell(l, l.Interface), method.Name(), on, c.spell(l, l.New))
			return
		}
	}
}

// missed returns the limits that do not apply to a method of a type, called in what belongs to others; nil if that is as it should
// be.
func (c *checker) missed(object *types.TypeName, method *types.Func, in []*types.TypeName) *limits {
	for _, l := range c.limits(object) {
		if slices.Contains(l.Methods, method.Name()) && !slices.ContainsFunc(in, func(o *types.TypeName) bool {
			return o == object || c.isInside(o, l) || c.isAdapter(o, method)
		}) {
			return &l
		}
	}
	return nil
}

// isInside reports whether a type of this package is an implementation, which may use itself and what it consists of.
func (c *checker) isInside(object *types.TypeName, l limits) bool {
	return slices.ContainsFunc(slices.Concat(c.limits(object), c.inside[object]), l.same)
}

// isAdapter reports whether a type of another package has a method like that, as a func type beside the interface may.
func (c *checker) isAdapter(object *types.TypeName, method *types.Func) bool {
	if object == nil || object.Pkg() == c.Pkg || types.IsInterface(object.Type()) {
		return false
	}
	found, _, _ := types.LookupFieldOrMethod(object.Type(), true, method.Pkg(), method.Name())
	return found != nil && types.Identical(found.Type(), method.Type())
}

// constructor reports d if it is a function that returns a bare value where a limited one is expected.
func (c *checker) constructor(d ast.Decl) {
	fn, ok := d.(*ast.FuncDecl)
	if !ok || fn.Recv != nil || fn.Body == nil || fn.Type.Results == nil {
		return
	}
	object, _ := c.TypesInfo.Defs[fn.Name].(*types.Func)
	results := object.Signature().Results()
	for i := range results.Len() {
		t := results.At(i).Type()
		if types.IsInterface(t) {
			c.hidden(fn.Body, i, object)
		} else if l := c.promised(object, typeName(t)); l != nil {
			c.ReportRangef(fn.Name, "%s returns a %s without the limits of %s; return what %s returns",
				fn.Name.Name, types.TypeString(t, c.qualify), c.spell(l, l.Interface), c.spell(l, l.New))
		}
	}
}

// promised returns the limits of the interface that a constructor's name promises; nil if its result is not bare, or if this
// package wraps such values itself.
func (c *checker) promised(fn *types.Func, result *types.TypeName) *limits {
	what, isNew := strings.CutPrefix(strings.ToLower(fn.Name()), "new")
	for _, l := range c.limits(result) {
		promises := what == "" || what == strings.ToLower(l.Interface)
		if isNew && promises && l.Path == c.Pkg.Path() && !c.isComposed(result, l) {
			return &l
		}
	}
	return nil
}

// hidden reports the return statements of a function whose i-th result is an interface with a wrapper, if they return bare
// values as it. A package that wraps such values itself may do so with what its own functions return, but not with what others
// get from it; one that knows no limiters leaves it to these.
func (c *checker) hidden(body *ast.BlockStmt, i int, fn *types.Func) {
	results := fn.Signature().Results()
	if c.returns[fn] || fn.Exported() && !slices.ContainsFunc(c.Pkg.Imports(), isRuntime) {
		return
	}
	iface := typeName(results.At(i).Type())
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if len(n.Results) != results.Len() {
				return true
			}
			bare := c.bareType(n.Results[i])
			for _, l := range c.limits(bare) {
				composed := c.isComposed(bare, l) && !fn.Exported() || slices.ContainsFunc(c.composed, l.same)
				if l.isOf(iface) && !composed {
					c.ReportRangef(n.Results[i], "this %s has no limits; return what %s returns", c.spell(&l, l.Interface), c.spell(&l, l.New))
				}
			}
		}
		return true
	})
}
