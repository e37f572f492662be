package collect

import (
	"go/ast"
	"go/token"
	"iter"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// Needs returns what has to be known of other declarations before the directives of p can be collected. It reads syntax alone.
func Needs(p *source.Package) source.Needs {
	return source.Needs{StandIns: standIns(p), Names: func(f *source.File, pkg string) bool {
		return slices.ContainsFunc(f.Syntax.Comments, func(group *ast.CommentGroup) bool {
			return slices.ContainsFunc(group.List, func(c *ast.Comment) bool {
				return strings.HasPrefix(c.Text, annotations.Head) && strings.Contains(c.Text, pkg+".")
			})
		})
	}}
}

// standIns returns the types that are to be generated for p, because signatures may mention them before they exist. Generic types are
// left out.
func standIns(p *source.Package) (types []string) {
	taken := map[string]bool{}
	for _, f := range p.Files {
		for _, name := range source.Names(f.Syntax) {
			taken[name.Name] = true
		}
	}
	for s, of := range toGenerate(p, p.Files) {
		if _, isFunc := s.Type.(*ast.FuncType); !isFunc && s.TypeParams == nil && !taken[of.Type] && token.IsIdentifier(of.Type) {
			taken[of.Type] = true
			types = append(types, of.Type)
		}
	}
	return types
}

// toGenerate returns the types of files of p with directives, and the names of what may be generated for them.
func toGenerate(p *source.Package, files []*source.File) iter.Seq2[*ast.TypeSpec, source.Generated] {
	var syntax []*ast.File
	for _, f := range files {
		syntax = append(syntax, f.Syntax)
	}
	annotated := source.Annotated(syntax, annotations.Head)
	return func(yield func(*ast.TypeSpec, source.Generated) bool) {
		for _, f := range syntax {
			for doc, s := range source.Types(f) {
				g, _ := p.Directives(doc)
				if annotated[s.Name.Name] && !yield(s, source.NamesFor(s.Name.Name, g)) {
					return
				}
			}
		}
	}
}
