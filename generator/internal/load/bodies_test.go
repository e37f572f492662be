package load

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestWithoutBodies(t *testing.T) {
	for src, want := range map[string]string{
		"package p\nfunc f() {\n\tx()\n\n}\nvar y = 1\n":         "package p\nfunc f() {\n\n\n}\nvar y = 1\n",
		"package p\nfunc f(\n\tx int,\n) {\n\tx()\n}\n":          "package p\nfunc f(\n\tx int,\n) {\n\n}\n",
		"package p\r\nfunc f() {\r\n\tx(\r\n}\r\n":               "package p\r\nfunc f() {\r\n\n}\r\n",
		"package p\nfunc f() {\n\tif x {\n}\nfunc g() {\n\t(\n}": "package p\nfunc f() {\n\n}\nfunc g() {\n\n}",
	} {
		if got := string(withoutBodies([]byte(src), true)); got != want {
			t.Errorf("of %q: %q, expected %q", src, got, want)
		}
	}
	for _, src := range []string{
		"", "}", "package p\nfunc f() {", "package p\nfunc f() {\n\tx\n",
		"package p\nfunc f() {\n\tx\nfunc g() {\n\tx\n", // a brace is missing
		"package p\nfunc f() { x( }\n",
		"package p\nfunc f()\ntype T struct {\n\ta int\n}\n",
		"package p\nfunc f() struct {\n\ta int\n}\n",
		"package p\nfunc f() interface {\n\tM()\n} {\n\treturn nil\n}\n",
		"package p\nconst c = `\nfunc f() {\n\tx\n}\n// no comment\n`\n", "package p\n/*\nfunc f() {\n\tx\n}\n*/\n",
		"package p\n/*\nfunc f() {\n\t*/\ntype T int /*\n}\n*/\n",
		"package p\n/*\nfunc f() {\n\t*/ type T int /*\n}\n*/\n",
		"package p\nconst c = `\nfunc f() {\n\t` + x + `\n}\n`\n",
		"package p\nfunc f() {\nlabel:\n\tgoto label\n}\n",
		"package p\nfunc f() {\n\tx := `\n}\n`\n}\n",
		"package p\nfunc f() {\n\t/*\n}\n*/\n}\n",
	} {
		if got := string(withoutBodies([]byte(src), true)); got != src {
			t.Errorf("of %q: %q, expected the same", src, got)
		}
	}
}

// TestWithoutBodiesKeepsDeclarations compares the declarations in all files of some packages.
func TestWithoutBodiesKeepsDeclarations(t *testing.T) {
	for _, dir := range []string{"context", "crypto/tls", "go/types", "reflect", "runtime", "time"} {
		files, err := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files: %v", err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := outline(t, src)
			for _, comments := range []bool{true, false} {
				if got := outline(t, withoutBodies(bytes.Clone(src), comments)); !slices.Equal(got, want) {
					t.Errorf("%s: the syntax has %d lines, expected %d", file, len(got), len(want))
				}
			}
		}
	}
}

// outline prints the syntax of src without bodies, comments and positions.
func outline(t *testing.T, src []byte) []string {
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if fn, ok := n.(*ast.FuncDecl); ok && fn.Body != nil {
			fn.Body.List = nil
		}
		return true
	})
	var b strings.Builder
	err = ast.Fprint(&b, nil, f, func(name string, v reflect.Value) bool {
		return name != "Comments" && name != "Doc" && name != "Comment" && v.Type() != reflect.TypeFor[token.Pos]()
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(b.String(), "\n")
}

// FuzzWithoutBodies checks that withoutBodies keeps the number of lines, and the declarations of source that parses.
func FuzzWithoutBodies(f *testing.F) {
	f.Add("package p\nimport . \"x\"\nfunc (t *T[A]) f(x struct{ a int }) interface{ M() } {\n\t`}`; '}'; /*}*/\n}\nvar f, g = func() {}, 4 / 2\n")
	f.Add("package p\nvar (\n\tx = `\nfunc f() {\n\t`\n\ty = 1\n\tz = `\n}\n`\n)\nfunc f() {\n\tx\n}\n")
	f.Add("package p\nconst c, d = `\nfunc f() {\n\treturn\n}\n// no comment\n`, '`' // `\n\nfunc g() {\n\tx(\"\\\"`\")\n}\n// h")
	f.Add("package p\n// a\nconst c = `\n// b`\n\n/*\n// c */\ntype T struct {\n\t// d\n\ta int // e\n}\n// f")
	f.Fuzz(func(t *testing.T, src string) {
		_, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
		for _, comments := range []bool{true, false} {
			rest := withoutBodies([]byte(src), comments)
			if strings.Count(src, "\n") != bytes.Count(rest, []byte("\n")) {
				t.Errorf("%q: lines are lost", src)
			}
			if err != nil {
				continue
			}
			if got, want := outline(t, rest), outline(t, []byte(src)); !slices.Equal(got, want) {
				t.Errorf("%q: the syntax has %d lines, expected %d", src, len(got), len(want))
			}
		}
	})
}
