package vet

import (
	"go/ast"
	"go/types"
	"slices"
)

// conversions reports bare values that d makes the interface of, but for those that it wraps then, and bare types that it passes
// as type arguments to what calls their limited methods.
func (c *checker) conversions(d ast.Decl) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if len(n.Args) == 1 && !c.wrapped[n] && c.TypesInfo.Types[n.Fun].IsType() {
				c.conversion(n)
			}
		case *ast.Ident:
			c.instance(n)
		}
		return true
	})
}

func (c *checker) conversion(call *ast.CallExpr) {
	iface := typeName(c.TypesInfo.TypeOf(call.Fun))
	for _, l := range c.limits(typeName(c.TypesInfo.TypeOf(call.Args[0]))) {
		if l.isOf(iface) && !slices.ContainsFunc(c.composed, l.same) {
			c.ReportRangef(call.Args[0], "this %s has no limits; use what %s returns", c.spell(&l, l.Interface), c.spell(&l, l.New))
		}
	}
}

// instance reports the type arguments of what id names.
func (c *checker) instance(id *ast.Ident) {
	of, ok := c.TypesInfo.Instances[id]
	if !ok {
		return
	}
	params, ok := c.TypesInfo.ObjectOf(id).Type().(interface{ TypeParams() *types.TypeParamList })
	if !ok || params.TypeParams().Len() != of.TypeArgs.Len() {
		return
	}
	for i := range of.TypeArgs.Len() {
		constraint := params.TypeParams().At(i).Constraint()
		for _, l := range c.limits(typeName(of.TypeArgs.At(i))) {
			limited := slices.ContainsFunc(l.Methods, func(name string) bool {
				o, _, _ := types.LookupFieldOrMethod(constraint, false, c.Pkg, name)
				return o != nil
			})
			if limited {
				c.ReportRangef(id, "the limits of %s do not reach %s as a type argument of %s; use what %s returns",
					c.spell(&l, l.Interface), types.TypeString(of.TypeArgs.At(i), c.qualify), id.Name, c.spell(&l, l.New))
			}
		}
	}
}
