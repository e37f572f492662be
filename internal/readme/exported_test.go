package readme

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportedIsDocumented expects a comment on everything that is exported to users of the runtime: packages, functions, types, methods,
// fields, constants and variables.
func TestExportedIsDocumented(t *testing.T) {
	cmd := exec.Command("go", "list", "-f", "{{.Dir}}", "./runtime/...")
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dir := range strings.FieldsSeq(string(out)) {
		if slash := filepath.ToSlash(dir); !strings.Contains(slash, "/internal/") && !strings.HasSuffix(slash, "/redisstore/lua") {
			checkExported(t, dir)
		}
	}
}

func checkExported(t *testing.T, dir string) {
	fset := token.NewFileSet()
	names, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, "x/"+filepath.Base(dir))
	if err != nil {
		t.Fatal(err)
	}
	require := func(at token.Pos, name, text string) {
		if text == "" {
			t.Errorf("%s: %s has no comment", fset.Position(at), name)
		}
	}
	require(files[0].Package, "package "+p.Name, p.Doc)
	requireFuncs := func(all ...*doc.Func) {
		for _, f := range all {
			require(f.Decl.Pos(), f.Name, f.Doc)
		}
	}
	requireValues := func(all ...*doc.Value) {
		for _, v := range all {
			for _, spec := range v.Decl.Specs {
				s := spec.(*ast.ValueSpec)
				require(s.Pos(), s.Names[0].Name, s.Doc.Text()+s.Comment.Text()+one(v.Decl, v.Doc))
			}
		}
	}
	requireFuncs(p.Funcs...)
	requireValues(append(p.Consts, p.Vars...)...)
	for _, typ := range p.Types {
		require(typ.Decl.Pos(), typ.Name, typ.Doc)
		requireFuncs(append(typ.Funcs, typ.Methods...)...)
		requireValues(append(typ.Consts, typ.Vars...)...)
		ast.Inspect(typ.Decl, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				spec.TypeParams = nil // which have no comments
			}
			if f, ok := n.(*ast.Field); ok && len(f.Names) > 0 && f.Names[0].IsExported() {
				require(f.Pos(), typ.Name+"."+f.Names[0].Name, f.Doc.Text()+f.Comment.Text())
			}
			return true
		})
	}
}

// one returns the comment of a declaration with a single specification.
func one(decl *ast.GenDecl, text string) string {
	if len(decl.Specs) == 1 {
		return text
	}
	return ""
}
