package collect

import (
	"go/types"
	"slices"
)

// ofInterface collects the methods of an interface: first those that its declaration lists, then embedded ones.
func (c *methods) ofInterface() {
	declarations, order := c.declarations(c.typeSource)
	found := slices.Collect(c.object.Type().Underlying().(*types.Interface).Methods())
	sortAsWritten(found, order)
	for _, f := range c.embed(found) {
		c.found.Add(c.of.Pos, "%s cannot be implemented outside of package %s, because of its method %s; "+
			"that package exports no interface with just its unexported methods, which the wrapper could embed",
			c.object.Name(), f.Pkg().Path(), f.Name())
	}
	for _, f := range found {
		if c.from().IsForeign(f) {
			continue
		}
		c.addMethod(f.Name(), f.Signature(), declarations[f.Name()])
	}
}

// sortAsWritten sorts methods by the order of their names in the source. Methods of other packages come last.
func sortAsWritten(methods []*types.Func, order []string) {
	rank := func(f *types.Func) int {
		if i := slices.Index(order, f.Name()); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(methods, func(a, b *types.Func) int { return rank(a) - rank(b) })
}
