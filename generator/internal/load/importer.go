package load

import (
	"errors"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// allOf loads packages that p imports, directly or by way of others, with all their exported names.
type allOf struct {
	*dependencies
	p *pkg
}

var errNotImported = errors.New("not imported")

// Import implements types.Importer.
func (i allOf) Import(path string) (*types.Package, error) {
	var found *packages.Package
	packages.Visit([]*packages.Package{i.p.meta}, func(dep *packages.Package) bool {
		if dep.PkgPath == path && dep != i.p.meta {
			found = dep
		}
		return found == nil
	}, nil)
	if found == nil {
		return nil, errNotImported
	}
	if own := i.own[path]; own != nil {
		return own.Types, nil
	}
	s := i.source(found)
	if s == nil {
		return nil, errNotImported
	}
	i.askExported(s)
	if i.settle(); len(i.faults) > 0 {
		return nil, errNotImported
	}
	return s.types, nil
}
