package load

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// nameStandIns sets the types that are to be generated for p, because signatures may mention them before they exist. Generic types are
// left out.
func nameStandIns(p *source.Package) {
	var files []*ast.File
	taken := map[string]bool{}
	for _, f := range p.Files {
		files = append(files, f.Syntax)
		for _, name := range source.Names(f.Syntax) {
			taken[name.Name] = true
		}
	}
	annotated := source.Annotated(files, "//ratelimit:")
	for _, f := range files {
		for doc, s := range source.Types(f) {
			wrapper := p.NamesFor(doc, s).Type
			_, isFunc := s.Type.(*ast.FuncType)
			if isFunc || s.TypeParams != nil || taken[wrapper] || !token.IsIdentifier(wrapper) || !annotated[s.Name.Name] {
				continue
			}
			taken[wrapper] = true
			p.StandIns = append(p.StandIns, wrapper)
		}
	}
}

// standIns declares types without methods.
func (l *loader) standIns(pkg string, types []string) *ast.File {
	src := strings.Builder{}
	fmt.Fprintf(&src, "package %s\n", pkg)
	for _, name := range types {
		fmt.Fprintf(&src, "type %s struct{}\n", name)
	}
	file, _ := parser.ParseFile(l.set.Fset, "", src.String(), parser.SkipObjectResolution)
	return file
}
