package expr

import (
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var wants = map[string]Want{"island": Island, "message": Message, "bool": Bool, "cost": Cost, "limit": Limit, "duration": Duration, "moment": Moment}

// TestLower compares the code of the expressions in testdata/lower.txt with the code that follows each of them there, and checks
// that it compiles.
func TestLower(t *testing.T) {
	const file = "testdata/lower.txt"
	env := fixture(t)
	var out strings.Builder
	var codes []*Code
	for _, head := range heads(t, file, "# ") {
		word, src, _ := strings.Cut(head, " ")
		code, errs := compile(src, env, wants[word])
		if code == nil {
			t.Errorf("%s: %v", head, errs)
			continue
		}
		codes = append(codes, code)
		n := names(env)
		fmt.Fprintf(&out, "# %s\n%s\n", head, show(code, n))
		if len(code.Uses) > 0 {
			fmt.Fprintf(&out, "uses %s\n", strings.Join(code.Uses, " "))
		}
		for _, path := range slices.Sorted(maps.Keys(n.imports)) {
			fmt.Fprintf(&out, "imports %s\n", path)
		}
		fmt.Fprint(&out, declared(n.variables))
		fmt.Fprintln(&out)
	}
	golden(t, file, out.String())
	if err := compiles(env, codes...); err != nil {
		t.Error(err)
	}
}

// TestErrors compares the errors of the expressions in testdata/errors.txt, where each error stands below its column.
func TestErrors(t *testing.T) {
	const file = "testdata/errors.txt"
	env := fixture(t)
	var out strings.Builder
	for _, head := range heads(t, file, "# ") {
		word, src, _ := strings.Cut(head, ": ")
		code, errs := compile(src, env, wants[word])
		if code != nil || len(errs) == 0 {
			t.Errorf("%s: no error", head)
		}
		fmt.Fprintf(&out, "# %s\n", head)
		for _, e := range errs {
			column := len([]rune(src[:e.Pos-1]))
			fmt.Fprintf(&out, "%s^ %s\n", strings.Repeat(" ", len("# ")+len(word)+len(": ")+column), e.Msg)
		}
		fmt.Fprintln(&out)
	}
	golden(t, file, out.String())
}

// heads returns the lines of a golden file that begin with mark.
func heads(t testing.TB, file, mark string) []string {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var heads []string
	for line := range strings.Lines(string(b)) {
		if head, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), mark); ok {
			heads = append(heads, head)
		}
	}
	return heads
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Fatalf("%s:%d differs; go test -update rewrites it. now:\n%s", file, i+1, strings.Join(a[i:min(i+10, len(a))], "\n"))
		}
	}
}

// exports finds the packages that code imports.
var exports = sync.OnceValue(func() types.Importer {
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		file, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", path).Output()
		if err != nil {
			return nil, err
		}
		return os.Open(strings.TrimSpace(string(file)))
	})
})

// compiles type-checks a function around each of codes in package docs.
func compiles(env *Env, codes ...*Code) error {
	paths := map[string]bool{"context": true, "net/url": true, "time": true}
	variables := map[string]string{}
	var body strings.Builder
	for i, c := range codes {
		n := names(env)
		n.imports, n.variables = paths, variables
		fmt.Fprintf(&body, "%s error {\nuse(%s)\nreturn nil\n}\n",
			strings.Replace(signature, "func(", fmt.Sprintf("func f%d(", i), 1), island(c, n))
	}
	var src strings.Builder
	src.WriteString("package docs\n\n")
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		fmt.Fprintf(&src, "import %q\n", p)
	}
	src.WriteString("func use(any) {}\n")
	src.WriteString("var _ context.Context; var _ url.URL; var _ time.Time\n")
	src.WriteString(declared(variables))
	src.WriteString(body.String())
	fset := token.NewFileSet()
	a, err := parser.ParseFile(fset, "testdata/docs.go.txt", nil, 0)
	if err != nil {
		return err
	}
	b, err := parser.ParseFile(fset, "code.go", src.String(), 0)
	if err != nil {
		return fmt.Errorf("%v\n%s", err, src.String())
	}
	config := types.Config{Importer: exports()}
	if _, err = config.Check("example.com/docs", fset, []*ast.File{a, b}, nil); err != nil {
		return fmt.Errorf("%v\n%s", err, src.String())
	}
	return nil
}

// FuzzCompile checks that Compile does not panic, that errors stand inside the expression, and that the code compiles.
func FuzzCompile(f *testing.F) {
	for _, head := range heads(f, "testdata/lower.txt", "# ") {
		word, src, _ := strings.Cut(head, " ")
		f.Add(src, int(wants[word]))
	}
	for _, head := range heads(f, "testdata/errors.txt", "# ") {
		_, src, _ := strings.Cut(head, ": ")
		f.Add(src, int(Island))
	}
	env := fixture(f)
	f.Fuzz(func(t *testing.T, src string, want int) {
		code, errs := compile(src, env, Want(uint(want)%6))
		if (code == nil) != (len(errs) > 0) {
			t.Errorf("code %v with errors %v", code, errs)
		}
		for _, e := range errs {
			if e.Pos < 1 || int(e.Pos) > len(src)+1 || e.Msg == "" {
				t.Errorf("error %q at %d", e.Msg, e.Pos)
			}
		}
		if code != nil {
			if err := compiles(env, code); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestPositions checks the positions of errors in an expression with escapes and with runes of several bytes.
func TestPositions(t *testing.T) {
	_, errs := Compile(annotations.Expr{Text: annotations.Text{Value: `"é" + nope`, Pos: 100}}, fixture(t), Island)
	if len(errs) != 1 || errs[0].Pos != 107 {
		t.Errorf("got %v, want one error at 107", errs)
	}
}

// TestTypeParam lowers a parameter whose type is a type parameter of the interface.
func TestTypeParam(t *testing.T) {
	pkg, err := docs()
	if err != nil {
		t.Fatal(err)
	}
	constraint := types.NewInterfaceType([]*types.Func{types.NewFunc(0, pkg, "String",
		types.NewSignatureType(nil, nil, nil, nil, types.NewTuple(types.NewVar(0, pkg, "", types.Typ[types.String])), false))}, nil)
	for want, c := range map[string]types.Type{
		"=> wrap.Must(wrap.TextOf(key))\nfails": types.Universe.Lookup("comparable").Type(),
		"=> wrap.NotNil(key).String()\nfails":   constraint,
	} {
		k := types.NewTypeParam(types.NewTypeName(0, pkg, "K", nil), c)
		env := &Env{From: reach.From{Package: pkg}, Params: []Param{{"key", k}}}
		code, errs := compile("key", env, Island)
		if code == nil || show(code, names(env)) != want {
			t.Errorf("%s: %v, %v", want, code, errs)
		}
	}
}

// TestUnknownType uses a parameter whose package does not compile yet.
func TestUnknownType(t *testing.T) {
	env := &Env{From: fixture(t).From, Params: []Param{{"x", types.NewPointer(types.Typ[types.Invalid])}}}
	if _, errs := compile("x.Owner", env, Island); len(errs) != 1 || !strings.Contains(errs[0].Msg, "does not compile") {
		t.Errorf("got %v", errs)
	}
}

// TestLong compiles expressions that would take for ever, or the whole stack, if any part were written more than once. The code may
// be long in spite of that, as nested blocks are indented.
func TestLong(t *testing.T) {
	env := fixture(t)
	nest := func(n int, begin, middle, end string) string {
		return strings.Repeat(begin, n) + middle + strings.Repeat(end, n)
	}
	for _, src := range []string{
		nest(maxLength/2-1, "(", "n", ")"), nest(maxLength-2, "!", "ok", ""), nest(maxLength-2, "-", "n", ""),
		nest(2000, "", "n", " + n"), nest(2000, "", "ok", " && ok"), nest(2000, "", "ok", " || ok"), nest(1000, "", "1", " < n"),
		nest(300, "(", "ok", " in [true, ok, !ok])"), nest(300, "(ok ? ", "n", " : 5)"), nest(300, "(count ?? ", "n", ")"),
		nest(300, "abs(", "n", ")"), nest(300, "max(n, ", "n", ", n)"), nest(300, "(n < ", "n", " < n ? 1 : 2)"),
		nest(300, "", "phone", "[1:n]"), nest(200, "let x = ", "n", "; x"),
		nest(100, "len(filter(ids, 1 < ", "n", " < 9))"), nest(200, "one(parts, ", "ok", ")"), "len(" + nest(1000, "[", "n", "]") + ")",
		nest(1000, "", "raw", " + n"), nest(100, "(raw < ", "n", " < raw ? 1 : 2)"), nest(300, "(raw ?? ", "raw", ")"),
	} {
		for _, want := range wants {
			code, errs := compile(src, env, want)
			if code == nil && len(errs) == 0 {
				t.Errorf("%.20s...: neither code nor errors", src)
			}
			if code != nil {
				if n := len(show(code, names(env))); n > 200*len(src) {
					t.Errorf("%.20s...: %d bytes of code for %d", src, n, len(src))
				}
			}
		}
	}
}
