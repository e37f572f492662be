package collect

import (
	"go/types"
	"slices"
)

// ofInterface collects the methods of an interface: first those that its declaration spells out, then the promoted ones.
func (c *methods) ofInterface() {
	declared, order := c.declarations(c.source)
	var found []*types.Func
	for f := range c.object.Type().Underlying().(*types.Interface).Methods() {
		found = append(found, f)
	}
	slices.SortStableFunc(found, func(a, b *types.Func) int { return rank(order, a) - rank(order, b) })
	for _, f := range found {
		if !f.Exported() && f.Pkg() != c.pkg.Types {
			c.errorf(c.of.Pos, "%s cannot be implemented outside of package %s, because of its method %s", c.object.Name(), f.Pkg().Path(), f.Name())
			continue
		}
		c.add(f.Name(), f.Signature(), declared[f.Name()])
	}
}

// rank orders methods as they are written; those from other packages come last.
func rank(order []string, f *types.Func) int {
	if i := slices.Index(order, f.Name()); i >= 0 {
		return i
	}
	return len(order)
}
