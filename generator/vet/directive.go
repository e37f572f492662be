package vet

import (
	"go/ast"
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
)

// directives reports what is wrong with the directives of f.
func (c *checker) directives(f *ast.File) {
	used := map[*ast.CommentGroup]bool{}
	for _, doc := range carried(f) {
		used[doc] = true
		_, errs := annotations.Parse(doc)
		c.reportAll(errs)
	}
	c.reportAll(annotations.Stray(c.Fset, f, used))
}

// carried returns the comments in which a directive takes effect, in their order: those of types, of methods, of what is
// embedded, and of fields.
func carried(f *ast.File) []*ast.CommentGroup {
	var docs []*ast.CommentGroup
	for doc, t := range load.Types(f) {
		docs = append(docs, doc)
		for _, m := range members(t.Type) {
			docs = append(docs, m.Doc)
		}
	}
	for m := range load.Methods(f) {
		docs = append(docs, m.Doc)
	}
	docs = slices.DeleteFunc(docs, func(doc *ast.CommentGroup) bool { return doc == nil })
	slices.SortFunc(docs, func(a, b *ast.CommentGroup) int { return int(a.Pos() - b.Pos()) })
	return docs
}

// members returns what a type spells out of the methods of an interface, or the fields of a struct.
func members(t ast.Expr) []*ast.Field {
	switch t := ast.Unparen(t).(type) {
	case *ast.InterfaceType:
		found := slices.Clone(t.Methods.List)
		for _, m := range t.Methods.List {
			found = append(found, members(m.Type)...) // of an interface that stands inside
		}
		return found
	case *ast.StructType:
		return t.Fields.List
	}
	return nil
}

func (c *checker) reportAll(errs annotations.Errors) {
	for _, e := range errs {
		d := analysis.Diagnostic{Pos: e.Pos, Category: "directive", Message: e.Msg}
		if fix := e.Fix; fix != nil {
			d.SuggestedFixes = []analysis.SuggestedFix{{
				Message:   "write " + fix.Text,
				TextEdits: []analysis.TextEdit{{Pos: fix.Pos, End: fix.End, NewText: []byte(fix.Text)}},
			}}
		}
		c.Report(d)
	}
}
