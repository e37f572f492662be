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
	taken := map[string]bool{}
	for _, f := range p.Files {
		for _, name := range source.Names(f.Syntax) {
			taken[name.Name] = true
		}
	}
	for s, of := range p.ToGenerate(p.Files) {
		if _, isFunc := s.Type.(*ast.FuncType); !isFunc && s.TypeParams == nil && !taken[of.Type] && token.IsIdentifier(of.Type) {
			taken[of.Type] = true
			p.StandIns = append(p.StandIns, of.Type)
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
