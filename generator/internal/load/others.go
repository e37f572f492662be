package load

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// addOthers reads those files of a package that this build leaves out. They say which names are free in it, wherever it is built.
func (l *loader) addOthers(pkg *Package, p *packages.Package) {
	if len(p.GoFiles) == 0 {
		return
	}
	dir := filepath.Dir(p.GoFiles[0])
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // then they have no say
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() || !strings.HasSuffix(path, ".go") || strings.ContainsRune("_.", rune(e.Name()[0])) || slices.Contains(p.GoFiles, path) {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil || IsOutput(path, src) {
			continue
		}
		syntax, _ := parser.ParseFile(l.set.Fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
		if syntax != nil && syntax.Name.Name == p.Name {
			pkg.Others = append(pkg.Others, &File{Path: path, Syntax: syntax, Annotated: hasDirective(src)})
		}
	}
}

// Imported returns the names that a file has from an import: that of the package, or all that it exports.
func (p *Package) Imported(spec *ast.ImportSpec) []string {
	path, _ := strconv.Unquote(spec.Path.Value)
	if spec.Name != nil && spec.Name.Name == "." {
		return slices.DeleteFunc(p.namesIn(path), func(name string) bool { return !token.IsExported(name) })
	}
	if spec.Name != nil {
		return []string{spec.Name.Name}
	}
	if i := slices.IndexFunc(p.Types.Imports(), func(i *types.Package) bool { return i.Path() == path }); i >= 0 {
		return []string{p.Types.Imports()[i].Name()}
	}
	return []string{names.BaseOf(path)} // most probably, as another build imports it
}

// namesIn returns what an imported package declares.
func (p *Package) namesIn(path string) []string {
	if p.dependencies != nil {
		if s := p.dependencies.source(p.meta.Imports[path]); s != nil {
			s.parse(p.dependencies.set.Fset)
			return slices.Collect(maps.Keys(s.named))
		}
	}
	for _, i := range p.Types.Imports() {
		if i.Path() == path {
			return i.Scope().Names()
		}
	}
	return nil
}
