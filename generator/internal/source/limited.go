package source

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"

	"github.com/ratelimit-go/ratelimit/annotations"
)

// Annotated returns the names of the types that have a directive above them, inside them, or above one of their methods. Here, a
// directive is any comment line that begins with words.
func Annotated(files []*ast.File, words string) map[string]bool {
	found := map[string]bool{}
	aliased := map[string]string{} // from the name of an alias to that of its type; a receiver may be an alias
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

// beginsInside reports whether a directive stands above a method or a field inside a type.
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

// IsLimited reports whether o, a type of another package, has a wrapper: it or one of its methods has rules, and no guard asks them. IsLimited
// reads the file that declares o, and returns false if it cannot.
func IsLimited(fset *token.FileSet, o types.Object) bool {
	const rule, guard = annotations.Head + "rule", annotations.Head + "guard"
	src, err := os.ReadFile(fset.Position(o.Pos()).Filename)
	if err != nil || !bytes.Contains(src, []byte(rule)) {
		return false
	}
	file, _ := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments|parser.SkipObjectResolution)
	files := []*ast.File{file}
	return Annotated(files, rule)[o.Name()] && !Annotated(files, guard)[o.Name()]
}
