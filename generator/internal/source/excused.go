package source

import (
	"go/ast"
	"go/token"

	"github.com/ratelimit-go/ratelimit/annotations"
)

// Excused returns a function that reports whether the line of a position ends with //ratelimit:bare and a reason.
func Excused(fset *token.FileSet, files []*ast.File) func(token.Pos) bool {
	lineOf := func(pos token.Pos) token.Position {
		at := fset.PositionFor(pos, false)
		return token.Position{Filename: at.Filename, Line: at.Line}
	}
	lines := map[token.Position]bool{}
	for _, f := range files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				if reason, ok := annotations.Bare(c); ok && reason != "" {
					lines[lineOf(c.Slash)] = true
				}
			}
		}
	}
	return func(pos token.Pos) bool { return lines[lineOf(pos)] }
}
