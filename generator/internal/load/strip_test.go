package load

import (
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

func TestStrip(t *testing.T) {
	for src, want := range map[string]string{
		"package p\nfunc f() { x() }":                        "package p\n|f: func f() {}",
		"package p\nfunc f()\nfunc g() {}":                   "package p\n|f: func f()\n|g: func g() {}",
		"package p;func f() { {}; '}' }; type T int":         "package p;; type T int|f: func f() {}",
		"package p\nfunc f() struct{}\nvar x = 1":            "package p\nvar x = 1|f: func f() struct{}\n",
		"package p\nfunc f() struct{ a int } { return }":     "package p\n|f: func f() struct{ a int } {}",
		"package p\nfunc f(x interface /*{*/ { M() }) { }":   "package p\n|f: func f(x interface   { M() }) {}",
		"package p\nfunc (t *T[A]) f() (x []struct{}) { y }": "package p\n|T: func (t *T[A]) f() (x []struct{}) {}",
		"package p\nfunc ( (*Ü) ) f(x [2]int) {}":            "package p\n|Ü: func ( (*Ü) ) f(x [2]int) {}",
		"package p\nfunc\nf() {}":                            "package p\n|f: func\nf() {}",
		"package p\nfunc f[T any](x T) {}":                   "package p\n|f: func f[T any](x T) {}",
		"package p\nfunc f() { `\n}` // }\n/* } */ }\nvar x": "package p\n\nvar x|f: func f() {}",
		"package p\nvar m = map[string]func(){\"{\": nil}":   "package p\nvar m = map[string]func(){\"{\": nil}",
		"package p\nvar f =\n\tfunc() { x }\nvar g = 4 / 2":  "package p\nvar f =\nfunc() { x }\nvar g = 4 / 2",
		"package p\nvar x = 1 // is one\nfunc f() { '\\'' }": "package p\nvar x = 1  \n|f: func f() {}",
		"//go:build go1.30\n\npackage p // it\nvar x = `\n`": "//go:build go1.30\n\npackage p  \nvar x = `\n`",
		"package p\nfunc f() { \"":                           "package p\n|f: func f() {}",
		"package p\nfunc":                                    "package p\n|: func",
		"package p\nfunc (":                                  "package p\n|: func (",
		"/":                                                  "/",
		"":                                                   "",
	} {
		rest, functions := strip([]byte(src))
		got := string(rest)
		for _, f := range functions {
			got += "|" + f.name + ": " + f.text
		}
		if got != want {
			t.Errorf("strip(%q) = %q, expected %q", src, got, want)
		}
	}
}

func TestHollow(t *testing.T) {
	for src, want := range map[string]string{
		"package p\nfunc f() { x(}\n":           "package p\nfunc f() {   }\n",
		"package p\nfunc f() { {`}`}\n\tx }":    "package p\nfunc f() {      \n   }",
		"package p\nvar x = func() { x }":       "package p\nvar x = func() { x }",
		"package p\nfunc f() {}\nfunc g() {":    "package p\nfunc f() {}\nfunc g() {",
		"package p\nfunc f() { {\nfunc g() { x": "package p\nfunc f() { {\nfunc g() { x",
	} {
		if got := string(hollow([]byte(src))); got != want {
			t.Errorf("hollow(%q) = %q, expected %q", src, got, want)
		}
	}
}

// TestStripKeepsDeclarations compares the declarations in all files of some packages.
func TestStripKeepsDeclarations(t *testing.T) {
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
			rest, functions := strip(src)
			for _, f := range functions {
				rest = append(rest, f.text+"\n"...)
			}
			got, want := outline(t, rest), outline(t, src)
			if !slices.Equal(got, want) {
				t.Errorf("%s: the syntax has %d lines, expected %d", file, len(got), len(want))
			}
		}
	}
}

// outline is the syntax of a source without bodies, comments and positions; functions come last.
func outline(t *testing.T, src []byte) []string {
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	var functions []ast.Decl
	f.Decls = slices.DeleteFunc(f.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		if ok {
			if fn.Body != nil {
				fn.Body.List = nil
			}
			functions = append(functions, fn)
		}
		return ok
	})
	f.Decls = append(f.Decls, functions...)
	var b strings.Builder
	err = ast.Fprint(&b, nil, f, func(name string, v reflect.Value) bool {
		return name != "Comments" && name != "Doc" && name != "Comment" && v.Type() != reflect.TypeFor[token.Pos]()
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(b.String(), "\n")
}

// FuzzStrip requires that the declarations of what parses are kept, and that nothing panics.
func FuzzStrip(f *testing.F) {
	f.Add("package p\nimport . \"x\"\nfunc (t *T[A]) f(x struct{ a int }) interface{ M() } { `}`; '}'; /*}*/ }\nvar f, g = func() {}, 4 / 2\n")
	f.Add("package p;const c = '\\'';func f();type T struct{ x int \"`\" }\nfunc g[A any]() {}")
	f.Fuzz(func(t *testing.T, src string) {
		rest, functions := strip([]byte(src))
		if _, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution); err != nil {
			return
		}
		for _, f := range functions {
			rest = append(rest, "\n"+f.text...)
		}
		if got, want := outline(t, rest), outline(t, []byte(src)); !slices.Equal(got, want) {
			t.Errorf("%q: the syntax has %d lines, expected %d", src, len(got), len(want))
		}
	})
}
