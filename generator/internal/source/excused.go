package source

import (
	"go/ast"
	"go/token"

	"github.com/ratelimit-go/ratelimit/annotations"
)

// Excused returns the lines that end with //ratelimit:bare and a reason.
func Excused(fset *token.FileSet, files []*ast.File) map[token.Position]bool {
	lines := map[token.Position]bool{}
	for _, f := range files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				if reason, ok := annotations.Bare(c); ok && reason != "" {
					lines[LineOf(fset, c.Slash)] = true
				}
			}
		}
	}
	return lines
}

// LineOf returns the file and the line of a position.
func LineOf(fset *token.FileSet, pos token.Pos) token.Position {
	at := fset.PositionFor(pos, false)
	return token.Position{Filename: at.Filename, Line: at.Line}
}
