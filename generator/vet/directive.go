package vet

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/ratelimit-go/ratelimit/annotations"
)

// directives reports what is wrong with the directives of f.
func (c *checker) directives(f *ast.File) {
	used := map[*ast.CommentGroup]bool{}
	for _, doc := range carried(f) {
		used[doc] = true
		_, errs := annotations.Parse(doc)
		c.reportAll(f, errs)
	}
	c.reportAll(f, annotations.Stray(c.Fset, f, used))
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

func (c *checker) reportAll(f *ast.File, errs annotations.Errors) {
	for _, e := range errs {
		d := analysis.Diagnostic{Pos: e.Pos, Category: "directive", Message: e.Msg}
		if edit, ok := repair(commentAt(f, e.Pos), e); ok {
			d.SuggestedFixes = []analysis.SuggestedFix{{
				Message: "write " + string(edit.NewText), TextEdits: []analysis.TextEdit{edit},
			}}
		}
		c.Report(d)
	}
}

// commentAt returns the comment of f that pos is in.
func commentAt(f *ast.File, pos token.Pos) *ast.Comment {
	for _, cg := range f.Comments {
		for _, c := range cg.List {
			if c.Pos() <= pos && pos <= c.End() {
				return c
			}
		}
	}
	return nil
}

// The errors that say what to write instead of what.
var (
	misspelt = regexp.MustCompile(`^unknown [a-z-]+ ("(?:[^"\\]|\\.)*"); did you mean (\S+)\?$`)
	nearMiss = regexp.MustCompile(`^("(?:[^"\\]|\\.)*") is no directive; write (\S+)$`)
)

// repair returns the edit that e asks for, if it is one that leaves the rest of the comment as it is.
func repair(c *ast.Comment, e annotations.Error) (analysis.TextEdit, bool) {
	var from token.Pos
	var m []string
	switch {
	case c == nil:
		return analysis.TextEdit{}, false
	case misspelt.MatchString(e.Msg):
		from, m = e.Pos, misspelt.FindStringSubmatch(e.Msg)
	case nearMiss.MatchString(e.Msg):
		from, m = c.Pos(), nearMiss.FindStringSubmatch(e.Msg)
	default:
		return analysis.TextEdit{}, false
	}
	wrong, err := strconv.Unquote(m[1])
	behind, found := strings.CutPrefix(c.Text[from-c.Pos():], wrong)
	if err != nil || !found || from == c.Pos() && strings.HasPrefix(behind, "=") { // it is the verb that is missing
		return analysis.TextEdit{}, false
	}
	return analysis.TextEdit{Pos: from, End: from + token.Pos(len(wrong)), NewText: []byte(m[2])}, true
}
