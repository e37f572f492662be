package source

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// NamesOf returns the names that a file has from an import: that of the package, or all that it exports. The package is most
// probably among those imported; declared tells what one declares.
func NamesOf(spec *ast.ImportSpec, imported []*types.Package, declared func(*types.Package) []string) []string {
	path, _ := strconv.Unquote(spec.Path.Value)
	i := slices.IndexFunc(imported, func(p *types.Package) bool { return p.Path() == path })
	switch {
	case spec.Name != nil && spec.Name.Name != ".":
		return []string{spec.Name.Name}
	case i < 0 && spec.Name == nil:
		return []string{names.BaseOf(path)} // as another build imports it
	case i < 0:
		return nil
	case spec.Name == nil:
		return []string{imported[i].Name()}
	}
	return slices.DeleteFunc(declared(imported[i]), func(name string) bool { return !token.IsExported(name) })
}
