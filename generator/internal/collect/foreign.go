package collect

import (
	"go/types"
	"slices"
)

// embed has the wrapper embed interfaces for those of the methods that only other packages can declare: exported interfaces of
// these packages that have no other methods, such as the UnsafeCatalogServer of generated gRPC code. It returns the methods that
// remain, by their packages.
func (c *methods) embed(methods []*types.Func) map[*types.Package][]*types.Func {
	foreign := map[*types.Package][]*types.Func{}
	for _, f := range methods {
		if c.from().IsForeign(f) {
			foreign[f.Pkg()] = append(foreign[f.Pkg()], f)
		}
	}
	for pkg, missing := range foreign {
		scope := pkg.Scope()
		if all := c.pkg.Import(pkg.Path()); all != nil {
			scope = all.Scope()
		}
		for _, name := range scope.Names() {
			o, ok := scope.Lookup(name).(*types.TypeName)
			if !ok || !o.Exported() || c.from().Unnameable(o.Type()) != "" {
				continue
			}
			if declared := declaredBy(o.Type(), missing); declared != nil {
				c.of.Embeds = append(c.of.Embeds, o.Type())
				missing = slices.DeleteFunc(missing, func(f *types.Func) bool { return slices.Contains(declared, f.Name()) })
			}
		}
		if foreign[pkg] = missing; len(missing) == 0 {
			delete(foreign, pkg)
		}
	}
	return foreign
}

// declaredBy returns the names of the methods of an interface if all of them are among those that are missing, else nil.
func declaredBy(t types.Type, missing []*types.Func) (names []string) {
	iface, ok := t.Underlying().(*types.Interface)
	if !ok || typeParams(t).Len() > 0 || !iface.IsMethodSet() {
		return nil
	}
	for f := range iface.Methods() {
		if !slices.ContainsFunc(missing, func(m *types.Func) bool {
			return m.Name() == f.Name() && types.Identical(m.Signature(), f.Signature())
		}) {
			return nil
		}
		names = append(names, f.Name())
	}
	return names
}
