package load

import (
	"go/ast"
	"go/parser"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// addOthers reads those files of a package that this build leaves out. They say which names are free in it, wherever it is built.
func (l *loader) addOthers(p *pkg) {
	built := p.meta.GoFiles
	if len(built) == 0 {
		return
	}
	dir := filepath.Dir(built[0])
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // then they have no say
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() || !strings.HasSuffix(path, ".go") || strings.ContainsRune("_.", rune(e.Name()[0])) || slices.Contains(built, path) {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil || source.IsOutput(path, src) {
			continue
		}
		syntax, _ := parser.ParseFile(l.set.Fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
		if syntax != nil && syntax.Name.Name == p.meta.Name {
			p.Others = append(p.Others, &source.File{Path: path, Syntax: syntax, Annotated: hasDirective(src)})
		}
	}
}

// noteImports notes the names that the files of p have from their imports.
func (d *dependencies) noteImports(p *pkg) {
	p.Imports = map[*ast.ImportSpec][]string{}
	for _, f := range slices.Concat(p.Files, p.Others) {
		for _, spec := range f.Syntax.Imports {
			p.Imports[spec] = source.NamesOf(spec, p.Types.Imports(), func(i *types.Package) []string {
				if s := d.source(p.meta.Imports[i.Path()]); s != nil {
					s.parse(d.set.Fset)
					return slices.Collect(maps.Keys(s.named))
				}
				return i.Scope().Names()
			})
		}
	}
}
