package load

import (
	"go/types"

	"golang.org/x/tools/go/packages"
)

// Dependency returns a package that p imports, directly or by way of others, with all its exported names; nil if it does not.
func (p *Package) Dependency(path string) *types.Package {
	if p.dependencies == nil {
		return nil
	}
	var found *packages.Package
	packages.Visit([]*packages.Package{p.meta}, func(dep *packages.Package) bool {
		if dep.PkgPath == path && dep != p.meta {
			found = dep
		}
		return found == nil
	}, nil)
	if found == nil {
		return nil
	}
	if own := p.dependencies.own[path]; own != nil {
		return own.Types
	}
	s := p.dependencies.source(found)
	if s == nil {
		return nil
	}
	p.dependencies.askExported(s)
	if len(p.dependencies.settle()) > 0 {
		return nil
	}
	return s.types
}
