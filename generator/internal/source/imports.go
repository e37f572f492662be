package source

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// ImportedNames returns the names that a file of p, or of its others, has from an import: that of the package, or all that it exports.
func (p *Package) ImportedNames(spec *ast.ImportSpec) []string {
	path, _ := strconv.Unquote(spec.Path.Value)
	imported := p.Types.Imports()
	i := slices.IndexFunc(imported, func(i *types.Package) bool { return i.Path() == path })
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
	return slices.DeleteFunc(imported[i].Scope().Names(), func(name string) bool { return !token.IsExported(name) })
}
