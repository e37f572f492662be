package vet

import (
	"go/ast"
	"go/types"
	"slices"
)

// typeArguments reports bare types that d passes as type arguments to what calls their limited methods.
func (c *checker) typeArguments(d ast.Decl) {
	ast.Inspect(d, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			c.instance(id)
		}
		return true
	})
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
