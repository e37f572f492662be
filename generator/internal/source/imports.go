package source

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// ImportedNames returns the names that an import declares in a file of Files or Others: the name of the package, or all exported
// names of a dot import.
func (p *Package) ImportedNames(spec *ast.ImportSpec) []string {
	path, _ := strconv.Unquote(spec.Path.Value)
	imported := p.imported(path)
	switch {
	case spec.Name != nil && spec.Name.Name != ".":
		return []string{spec.Name.Name}
	case imported == nil && spec.Name == nil:
		return []string{names.BaseOf(path)} // only another build imports the package, so its name is guessed
	case imported == nil:
		return nil
	case spec.Name == nil:
		return []string{imported.Name()}
	}
	return slices.DeleteFunc(imported.Scope().Names(), func(name string) bool { return !token.IsExported(name) })
}
