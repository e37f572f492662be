package load

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/collect"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// module writes a module. The list alternates between file names and contents.
func module(t *testing.T, files ...string) string {
	t.Helper()
	dir := testmodule.Dir(t)
	files = append(files, "go.mod", "module example.com/m\n\ngo 1.26\n")
	for i := 0; i < len(files); i += 2 {
		testmodule.Write(t, filepath.Join(dir, files[i]), files[i+1])
	}
	return dir
}

const annotated = "\n//ratelimit:wrap\ntype X interface{ M(x T) error }\n"

func load(t *testing.T, dir string, patterns ...string) *Set {
	t.Helper()
	set, err := Load(t.Context(), Config{Dir: dir, Patterns: patterns, Needs: collect.Needs})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func first(set *Set) *source.Package { return slices.Collect(set.Packages)[0] }

func paths(set *Set) string {
	var found []string
	for p := range set.Packages {
		found = append(found, p.Path)
	}
	return strings.Join(found, " ")
}

func TestHasDirective(t *testing.T) {
	for src, want := range map[string]bool{
		"//ratelimit:rule":                     true,
		"\t//ratelimit:nonsense x":             true,
		"// ratelimit:rule limit=1":            true,
		"x // RateLimit: rule":                 true,
		"//RATELIMIT:RULE":                     true,
		"//rate-limit:rule":                    true,
		"/* ratelimit:rule */":                 true,
		"/*\n * ratelimit:wrap\n */":           true,
		"//ratelmt:rule limit=1":               true,
		"// see golden:ruler":                  false,
		"import \"example.com/ratelimit\"":     false,
		"// ratelimit is a word":               false,
		"// the limit: of things, a ratelimit": false,
		"ratelimit.NewRules(x)":                false,
		"":                                     false,
	} {
		if got := hasDirective([]byte(src)); got != want {
			t.Errorf("hasDirective(%q) = %v", src, got)
		}
	}
}

func TestFolders(t *testing.T) {
	x := "package p\n\ntype T int\n" + annotated
	dir := module(t, "a/a.go", x, "b/b.go", "package b\n", "_c/c.go", x, "testdata/t.go", x, "vendor/v/v.go", x, ".d/d.go", x,
		"nested/n.go", x, "nested/go.mod", "module example.com/m/nested\n\ngo 1.26\n")
	if got := paths(load(t, dir, "./...")); got != "example.com/m/a" {
		t.Errorf("./... is %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.work"), []byte("go 1.26\nuse .\nuse ./nested\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := paths(load(t, dir, "./...", "./nested")); got != "example.com/m/a example.com/m/nested" {
		t.Errorf("in a workspace, ./... and ./nested are %s", got)
	}
}

// TestLinkedFolder finds folders below a symbolic link, as the go command does.
func TestLinkedFolder(t *testing.T) {
	dir := module(t, "a/a.go", "package a\n\ntype T int\n"+annotated)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if got := paths(load(t, link, "./...")); got != "example.com/m/a" {
		t.Errorf("./... in a link to the module is %q", got)
	}
}

func TestNothingMatches(t *testing.T) {
	_, err := Load(t.Context(), Config{Dir: module(t), Patterns: []string{"example.com/m/x/..."}})
	if err == nil || err.Error() != "example.com/m/x/...: no package matches" {
		t.Errorf("the error is %v", err)
	}
}

func TestIgnoredFolder(t *testing.T) {
	x := "package p\n\ntype T int\n" + annotated
	dir := module(t, "a/a.go", x, "b/b.go", x)
	mod := "module example.com/m\n\ngo 1.26\n\nignore ./b\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := paths(load(t, dir, "./...")); got != "example.com/m/a" {
		t.Errorf("./... is %s", got)
	}
}

// TestWrong expects the name of the unreadable file rather than the pattern. It makes the errors itself, as root can read all files.
func TestWrong(t *testing.T) {
	dir := filepath.FromSlash("/m")
	fault := func(path string, err error) error {
		return &fs.PathError{Op: "open", Path: filepath.FromSlash(path), Err: err}
	}
	const mend = ": permission denied; make it readable, or leave it out of the packages"
	for _, c := range []struct {
		pattern string
		err     error
		want    string
	}{
		{"./...", fault("/m/a/b", fs.ErrPermission), filepath.FromSlash("a/b") + mend},
		{"./...", fault("/m/a/b/", fs.ErrPermission), filepath.FromSlash("a/b") + mend},
		{"./...", fault("/m/", fs.ErrPermission), "." + mend},
		{"./a", fault("/m/a/x.go", fs.ErrPermission), filepath.FromSlash("a/x.go") + mend},
		{"./a", fault("/m/a", fs.ErrNotExist), "./a: file does not exist"},
		{"example.com/m/a", fault("/m/a", fs.ErrPermission), "a" + mend},
		{"../x", fault("/x", fs.ErrPermission), "../x" + mend},
	} {
		if got := wrong(dir, c.pattern, c.err); got.Error() != c.want {
			t.Errorf("%s: %q, expected %q", c.pattern, got, c.want)
		}
	}
}

// TestFault expects an error after a panic in go/types.
func TestFault(t *testing.T) {
	dir := module(t, "a.go", "package a\n\ntype T int\n"+annotated)
	p := first(load(t, dir, "."))
	loaded := p.Loader.(*compilation)
	p.Files[0].Syntax.Decls = []ast.Decl{&ast.GenDecl{Tok: token.TYPE, Specs: []ast.Spec{&ast.TypeSpec{}}}}
	const want = "a.go:1:9: Go's own type checker fails at this package; does it compile? ("
	found := newDependencies(loaded.loader).check(p, loaded.meta)
	if got := annotations.Join(found.Messages(loaded.set.Fset, dir)); !strings.HasPrefix(got, want) {
		t.Errorf("found %s, expected %s", got, want)
	}
}

// TestVariants expects the test variant of a package, which has all its files, also where another package imports it.
func TestVariants(t *testing.T) {
	x := "package p\n\ntype T int\n" + annotated
	dir := module(t, "p/p.go", x, "p/p_test.go", strings.ReplaceAll(strings.ReplaceAll(x, "X", "Y"), "type T int", "type U = T"),
		"p/x_test.go", strings.ReplaceAll(x, "package p", "package p_test"),
		"q/q.go", "package q\n\nimport \"example.com/m/p\"\n\ntype T = p.T\n"+annotated)
	set := load(t, dir, "./...")
	if got := paths(set); got != "example.com/m/p example.com/m/p_test example.com/m/q" {
		t.Errorf("found %s", got)
	}
	for p := range set.Packages {
		if len(p.Errors) > 0 {
			t.Error(p.Errors)
		}
		if n := len(p.Files); p.Path == "example.com/m/p" && n != 2 {
			t.Errorf("%s has %d files", p.Path, n)
		}
	}
}

// TestExternalTest loads the external test of a package that has only generated files.
func TestExternalTest(t *testing.T) {
	test := "package m_test\n\nimport _ \"example.com/m\"\n\ntype T int\n" + annotated
	set := load(t, module(t, "a_ratelimit.go", source.Header+"\n\npackage m\n", "a_test.go", test), "./a_test.go")
	if got := paths(set); got != "example.com/m_test" || len(set.Found) > 0 {
		t.Errorf("found %q and %v", got, set.Found)
	}
}

// TestOnePackageInMemory loads packages that import each other, and expects that the syntax of the earlier ones can be freed.
func TestOnePackageInMemory(t *testing.T) {
	const n = 8
	files := []string{"p0/p.go", "package p\n\ntype T int\n" + annotated}
	for i := 1; i < n; i++ {
		src := fmt.Sprintf("package p\n\nimport below \"example.com/m/p%d\"\n\ntype T = below.T\n", i-1)
		files = append(files, fmt.Sprintf("p%d/p.go", i), src+annotated)
	}
	set := load(t, module(t, files...), "./...")
	var before []weak.Pointer[ast.File]
	for p := range set.Packages {
		runtime.GC()
		for i, f := range before {
			if f.Value() != nil {
				t.Errorf("p%d is held when %s is loaded", i, p.Path)
			}
		}
		if len(p.Errors) > 0 {
			t.Error(p.Errors)
		}
		before = append(before, weak.Make(p.Files[0].Syntax))
	}
	if len(before) != n {
		t.Errorf("%d packages were loaded, expected %d: %v", len(before), n, set.Found)
	}
}
