package source

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
)

// ImportedType returns the type of another package that an expression in p names; nil if it names none.
func (p *Package) ImportedType(e ast.Expr) types.Object {
	x, ok := Bare(e).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if id, ok := x.X.(*ast.Ident); ok {
		if imported := p.ImportedAs(e.Pos(), id.Name); imported != nil {
			return imported.Scope().Lookup(x.Sel.Name)
		}
	}
	return nil
}

// ImportedAs returns the package that the file around a position imports under a name, or, as _, for its directives alone.
func (p *Package) ImportedAs(in token.Pos, name string) *types.Package {
	for _, f := range p.Files {
		if in < f.Syntax.FileStart || in >= f.Syntax.FileEnd {
			continue
		}
		for _, spec := range f.Syntax.Imports {
			for _, i := range p.Types.Imports() {
				local := i.Name()
				if spec.Name != nil && spec.Name.Name != "_" {
					local = spec.Name.Name
				}
				if local == name && spec.Path.Value == `"`+i.Path()+`"` {
					return i
				}
			}
		}
	}
	return nil
}

// IsLimited reports whether rules stand on a type of another package or on its methods, as far as its source can be read.
func IsLimited(fset *token.FileSet, o types.Object) bool {
	src, err := os.ReadFile(fset.Position(o.Pos()).Filename)
	if err != nil || !bytes.Contains(src, []byte("//ratelimit:rule")) {
		return false
	}
	file, _ := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments|parser.SkipObjectResolution)
	if file == nil {
		return false
	}
	for doc, t := range Types(file) {
		if t.Name.Name == o.Name() && (hasRule(doc) || hasRuleInside(t)) {
			return true
		}
	}
	for m := range Methods(file) {
		if Receiver(m) == o.Name() && hasRule(m.Doc) {
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

func hasRule(cg *ast.CommentGroup) bool { return Begins(cg, "//ratelimit:rule") }

// Receiver is the name of the type that a method is declared for; "" if that is unknown, or of a function.
func Receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	return NameOf(d.Recv.List[0].Type)
}
