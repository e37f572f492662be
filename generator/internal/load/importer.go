package load

import (
	"errors"
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
