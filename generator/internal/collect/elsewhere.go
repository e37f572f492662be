package collect

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
)

// foreignType returns the type of another package that an expression names; nil if it names none.
func (c *methods) foreignType(e ast.Expr) types.Object {
	switch x := e.(type) {
	case *ast.IndexExpr:
		return c.foreignType(x.X)
	case *ast.IndexListExpr:
		return c.foreignType(x.X)
	case *ast.ParenExpr:
		return c.foreignType(x.X)
	case *ast.StarExpr:
		return c.foreignType(x.X)
	case *ast.SelectorExpr:
		if id, ok := x.X.(*ast.Ident); ok {
			if p := c.imported(e.Pos(), id.Name); p != nil {
				return p.Scope().Lookup(x.Sel.Name)
			}
		}
	}
	return nil
}

// isLimited reports whether rules stand on a type of another package, or on its methods, as far as its source can be read.
func (c *collector) isLimited(o types.Object) bool {
	src, err := os.ReadFile(c.fset.Position(o.Pos()).Filename)
	if err != nil || !bytes.Contains(src, []byte("//ratelimit:rule")) {
		return false
	}
	file, _ := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments|parser.SkipObjectResolution)
	if file == nil {
		return false
	}
	return slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		switch d := d.(type) {
		case *ast.FuncDecl:
			return d.Recv != nil && receiver(d) == o.Name() && hasRule(d.Doc)
		case *ast.GenDecl:
			return slices.ContainsFunc(d.Specs, func(s ast.Spec) bool {
				t, ok := s.(*ast.TypeSpec)
				return ok && t.Name.Name == o.Name() && (hasRule(t.Doc) || !d.Lparen.IsValid() && hasRule(d.Doc) || hasRuleInside(t))
			})
		}
		return false
	})
}

// hasRuleInside reports whether a rule stands on a method or a field that a type spells out.
func hasRuleInside(t *ast.TypeSpec) bool {
	found := false
	ast.Inspect(t.Type, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok {
			found = found || hasRule(field.Doc)
		}
		return !found
	})
	return found
}

func hasRule(cg *ast.CommentGroup) bool {
	return cg != nil && slices.ContainsFunc(cg.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//ratelimit:rule") })
}
