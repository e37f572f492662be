package load

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// addStandIns declares the types that are to be generated for p, as signatures may mention them before they are there. They
// have no methods, and no type parameters: a generic one cannot be mentioned.
func (l *loader) addStandIns(p *Package, name string) {
	taken := declared(p)
	src := strings.Builder{}
	fmt.Fprintf(&src, "package %s\n", name)
	for _, f := range p.Files {
		if !f.Annotated {
			continue
		}
		for doc, s := range Types(f.Syntax) {
			wrapper := WrapperOf(doc, s)
			if _, isFunc := s.Type.(*ast.FuncType); isFunc || s.TypeParams != nil || taken[wrapper] || !token.IsIdentifier(wrapper) {
				continue
			}
			taken[wrapper] = true
			fmt.Fprintf(&src, "type %s struct{}\n", wrapper)
		}
	}
	p.standIns, _ = parser.ParseFile(l.set.Fset, "", src.String(), parser.SkipObjectResolution)
}

// StandIns returns the names of the types that stand for what is to be generated.
func (p *Package) StandIns() []string {
	var found []string
	if p.standIns != nil {
		for name := range Names(p.standIns) {
			found = append(found, name.Name)
		}
	}
	return found
}

// WrapperOf is the name of the type that is generated for s.
func WrapperOf(doc *ast.CommentGroup, s *ast.TypeSpec) string {
	if doc != nil {
		if g, _ := annotations.Parse(doc); len(g.Wraps) > 0 && g.Wraps[0].Text("name") != "" {
			return g.Wraps[0].Text("name")
		}
	}
	return names.Prefixed("limited", s.Name.Name)
}

// declared returns the names that a package declares by itself.
func declared(p *Package) map[string]bool {
	found := map[string]bool{}
	for _, f := range p.Files {
		for name := range Names(f.Syntax) {
			found[name.Name] = true
		}
	}
	return found
}
