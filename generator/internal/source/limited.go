package source

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
)

// Annotated returns the names of the types that have a directive on them, inside them, or on one of their methods. A directive is a
// comment that begins with words.
func Annotated(files []*ast.File, words string) map[string]bool {
	found := map[string]bool{}
	aliased := map[string]string{} // types by their aliases, which receivers may be called by
	for _, f := range files {
		for doc, spec := range Types(f) {
			if Begins(doc, words) || beginsInside(spec, words) {
				found[spec.Name.Name] = true
			}
			if spec.Assign.IsValid() {
				aliased[spec.Name.Name] = NameOf(spec.Type)
			}
		}
	}
	for _, f := range files {
		for _, m := range Methods(f) {
			for name := Receiver(m); Begins(m.Doc, words) && name != "" && !found[name]; name = aliased[name] {
				found[name] = true
			}
		}
	}
	return found
}

// beginsInside reports whether a directive stands on a method or a field that a type spells out.
func beginsInside(spec *ast.TypeSpec, words string) bool {
	found := false
	ast.Inspect(spec.Type, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			found = found || Begins(f.Doc, words)
		}
		return !found
	})
	return found
}

// IsLimited reports whether rules stand on a type of another package or on its methods, as far as its source can be read.
func IsLimited(fset *token.FileSet, o types.Object) bool {
	const rule = "//ratelimit:rule"
	src, err := os.ReadFile(fset.Position(o.Pos()).Filename)
	if err != nil || !bytes.Contains(src, []byte(rule)) {
		return false
	}
	file, _ := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments|parser.SkipObjectResolution)
	return Annotated([]*ast.File{file}, rule)[o.Name()]
}
