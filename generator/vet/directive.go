package vet

import (
	"go/ast"
	"go/token"

	"golang.org/x/tools/go/analysis"

	"github.com/ratelimit-go/ratelimit/annotations"
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

// carried returns the comments in which a directive takes effect: those of types, and of methods.
func carried(f *ast.File) []*ast.CommentGroup {
	var docs []*ast.CommentGroup
	add := func(doc *ast.CommentGroup) {
		if doc != nil {
			docs = append(docs, doc)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				add(d.Doc)
			}
		case *ast.GenDecl:
			if d.Tok == token.TYPE && !d.Lparen.IsValid() {
				add(d.Doc)
			}
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					add(s.Doc)
					for _, m := range methods(s) {
						add(m.Doc)
					}
				}
			}
		}
	}
	return docs
}

// methods returns what an interface type spells out of its methods.
func methods(s *ast.TypeSpec) []*ast.Field {
	iface, ok := s.Type.(*ast.InterfaceType)
	if !ok {
		return nil
	}
	var found []*ast.Field
	for _, m := range iface.Methods.List {
		if len(m.Names) > 0 {
			found = append(found, m)
		}
	}
	return found
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
