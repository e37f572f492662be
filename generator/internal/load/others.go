package load

import (
	"go/parser"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// addOthers parses the files of a package that are not part of this build. Generated names must not collide with theirs either.
func (l *loader) addOthers(p *source.Package, meta *packages.Package) {
	dir := filepath.Dir(meta.GoFiles[0])
	entries, _ := os.ReadDir(dir) // files that cannot be read are left out
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() || !strings.HasSuffix(path, ".go") || strings.ContainsRune("_.", rune(e.Name()[0])) || slices.Contains(meta.GoFiles, path) {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil || source.IsOutput(path, src) {
			continue
		}
		syntax, _ := parser.ParseFile(l.set.Fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
		if syntax.Name.Name == meta.Name {
			p.Others = append(p.Others, &source.File{Path: path, Syntax: syntax})
		}
	}
}
