package load

import (
	"errors"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// importerOf gives the type checker what a package imports. Along with an error it returns a package about which the type checker does not
// complain further.
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

// guessed is what a package of this path is probably called: redis for github.com/redis/go-redis/v9, yaml for gopkg.in/yaml.v3.
func guessed(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(names.BaseOf(path), "go-"), ".")
	return strings.TrimSuffix(name, "-go")
}

// allOf loads packages that another one imports, directly or by way of others, with all their exported names.
type allOf struct {
	*dependencies
	by *packages.Package
	at token.Pos // where faults are told
}

var errNotImported = errors.New("not imported")

// Import implements types.Importer.
func (i allOf) Import(path string) (_ *types.Package, err error) {
	err = errNotImported // also after a fault
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
