package load

import (
	"errors"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// importerOf gives the type checker the imports of a package. If an import fails, Import also returns an empty package, so that the
// type checker reports no further errors about it.
type importerOf struct {
	*dependencies
	by *packages.Package
}

func (i importerOf) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	unknown := types.NewPackage(path, guessed(path))
	p := i.by.Imports[path]
	if p == nil {
		return unknown, errors.New("the go command does not know it")
	}
	if s := i.source(p); s != nil && len(p.GoFiles) > 0 {
		return s.types, nil
	}
	return unknown, errors.New(message(p))
}

// guessed returns the probable name of a package: redis for github.com/redis/go-redis/v9, yaml for gopkg.in/yaml.v3.
func guessed(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(names.BaseOf(path), "go-"), ".")
	return strings.TrimSuffix(name, "-go")
}

// allOf imports the packages that by imports, directly or not, with all their exported names.
type allOf struct {
	*dependencies
	by *packages.Package
	at token.Pos // the position of errors about panics
}

var errNotImported = errors.New("not imported")

// Import implements types.Importer.
func (i allOf) Import(path string) (_ *types.Package, err error) {
	err = errNotImported // also after a panic
	defer noteFault(&i.set.Found, i.at)
	for p := range packages.Postorder([]*packages.Package{i.by}) {
		if s := i.source(p); p.PkgPath == path && p != i.by && s != nil {
			i.askExported(s)
			i.settle()
			return s.types, nil
		}
	}
	return nil, err
}
