package collect

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"

	"github.com/ratelimit-go/ratelimit/generator/internal/load"
)

// importedType returns the type of another package that an expression names; nil if it names none.
func (c *methods) importedType(e ast.Expr) types.Object {
	x, ok := load.Bare(e).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if id, ok := x.X.(*ast.Ident); ok {
		if p := c.imported(e.Pos(), id.Name); p != nil {
			return p.Scope().Lookup(x.Sel.Name)
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
	for doc, t := range load.Types(file) {
		if t.Name.Name == o.Name() && (hasRule(doc) || hasRuleInside(t)) {
			return true
		}
	}
	for m := range load.Methods(file) {
		if receiver(m) == o.Name() && hasRule(m.Doc) {
			return true
		}
	}
	return false
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

func hasRule(cg *ast.CommentGroup) bool { return load.Begins(cg, "//ratelimit:rule") }
