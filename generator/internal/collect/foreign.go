package collect

import (
	"go/types"
	"maps"
	"slices"
	"strings"
)

// embed makes the wrapper embed interfaces for those of the methods that only other packages can declare. It uses exported
// interfaces of these packages that have no other methods, such as the UnsafeCatalogServer of generated gRPC code. It returns the
// first method of each package for which there is no such interface.
func (c *methods) embed(methods []*types.Func) (remain []*types.Func) {
	foreign := map[*types.Package][]*types.Func{}
	for _, f := range methods {
		if c.from().IsForeign(f) {
			foreign[f.Pkg()] = append(foreign[f.Pkg()], f)
		}
	}
	byPath := func(a, b *types.Package) int { return strings.Compare(a.Path(), b.Path()) }
	for _, pkg := range slices.SortedFunc(maps.Keys(foreign), byPath) {
		if missing := c.embedFrom(pkg, foreign[pkg]); len(missing) > 0 {
			remain = append(remain, missing[0])
		}
	}
	return remain
}

// embedFrom does what embed does for the methods of one package, and returns the methods that remain.
func (c *methods) embedFrom(pkg *types.Package, missing []*types.Func) []*types.Func {
	for _, name := range pkg.Scope().Names() {
		o, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || !o.Exported() || c.from().Unnameable(o.Type()) != "" || typeParams(o.Type()).Len() > 0 {
			continue
		}
		iface, ok := o.Type().Underlying().(*types.Interface)
		if ok && iface.NumMethods() > 0 && types.Implements(types.NewInterfaceType(slices.Clone(missing), nil).Complete(), iface) {
			c.of.Embeds = append(c.of.Embeds, o.Type())
			missing = slices.DeleteFunc(missing, func(m *types.Func) bool {
				found, _, _ := types.LookupFieldOrMethod(iface, false, m.Pkg(), m.Name())
				return found != nil
			})
		}
	}
	return missing
}
