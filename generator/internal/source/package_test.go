package source

import (
	"go/ast"
	"testing"
)

// TestDirectivesAreReadOnce changes a comment after it was read.
func TestDirectivesAreReadOnce(t *testing.T) {
	comment := &ast.Comment{Slash: 1, Text: "//ratelimit:skip"}
	doc := &ast.CommentGroup{List: []*ast.Comment{comment}}
	p := &Package{}
	for range 2 {
		if g, errs := p.Directives(doc); g.Skip.IsZero() || len(errs) > 0 {
			t.Errorf("found %v, %v", g, errs)
		}
		comment.Text = "//ratelimit:wrap"
	}
}
