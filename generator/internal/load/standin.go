package load

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// standIns declares the types that are to be generated for p, as signatures may mention them before they are there. They
// have no methods, and no type parameters: a generic one cannot be mentioned.
func (l *loader) standIns(p *source.Package, name string) *ast.File {
	taken := map[string]bool{}
	for _, f := range p.Files {
		for name := range source.Names(f.Syntax) {
			taken[name.Name] = true
		}
	}
	src := strings.Builder{}
	fmt.Fprintf(&src, "package %s\n", name)
	for _, f := range p.Files {
		if !f.Annotated {
			continue
		}
		for doc, s := range source.Types(f.Syntax) {
			wrapper := source.WrapperOf(doc, s)
			if _, isFunc := s.Type.(*ast.FuncType); isFunc || s.TypeParams != nil || taken[wrapper] || !token.IsIdentifier(wrapper) {
				continue
			}
			taken[wrapper] = true
			p.StandIns = append(p.StandIns, wrapper)
			fmt.Fprintf(&src, "type %s struct{}\n", wrapper)
		}
	}
	file, _ := parser.ParseFile(l.set.Fset, "", src.String(), parser.SkipObjectResolution)
	return file
}
