package expr

import (
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var wants = map[string]Want{"island": Island, "bool": Bool, "int": Int, "duration": Duration}

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
		if code.Plain && wants[word] == Island {
			fmt.Fprintln(&out, "plain")
		}
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

const runtimeStub = `package wrap
import ("context"; "time")
func RetryAfter(any) time.Duration { return 0 }
func ClientIP(context.Context) string { return "" }
func UserID(context.Context) string { return "" }
func IsNil(any) bool { return false }
func Carried(identity, what string) string { return "" }
func Copy[T any](v T) *T { return &v }
func Must[T any](v T, err error) T { return v }
func NotNil[T any](v T) T { return v }`

const machineStub = `package exprvm
import ("context"; "time")
type Program struct{}
func (*Program) Duration(...any) (time.Duration, error) { return 0, nil }
func (*Program) Text(...any) (string, error) { return "", nil }
func (*Program) Bool(...any) (bool, error) { return false, nil }
func (*Program) Int(...any) (int64, error) { return 0, nil }
func Identity(string, func(context.Context) string) any { return nil }`

const checkedStub = `package checked
type Integer interface { ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr }
func Add[N ~int | ~int64](a, b N) (N, error) { return a + b, nil }
func Subtract[N ~int | ~int64](a, b N) (N, error) { return a - b, nil }
func Multiply[N ~int | ~int64](a, b N) (N, error) { return a * b, nil }
func Remainder[N ~int | ~int64](a, b N) (N, error) { return a % b, nil }
func Negate[N Integer](n N) (N, error) { return -n, nil }
func Replace(text, old, new string) (string, error)         { return text, nil }
func To[T, N Integer](n N) (T, error) { return T(n), nil }`

// imported finds the packages that code imports.
type imported struct{ std types.Importer }

var packages = sync.OnceValue(func() imported { return imported{importer.Default()} })

func (i imported) Import(path string) (*types.Package, error) {
	stub := map[string]string{wrapPath: runtimeStub, machinePath: machineStub, checkedPath: checkedStub}[path]
	if stub == "" {
		return i.std.Import(path)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", stub, 0)
	if err != nil {
		return nil, err
	}
	config := types.Config{Importer: i.std}
	return config.Check(path, fset, []*ast.File{file}, nil)
}

// compiles type-checks a function around each of codes in package docs.
func compiles(env *Env, codes ...*Code) error {
	paths := map[string]bool{"context": true, "net/url": true, "time": true, machinePath: true}
	var body strings.Builder
	for i, c := range codes {
		n := names(env)
		n.imports = paths
		fmt.Fprintf(&body, "%s error {\nuse(%s)\nreturn nil\n}\n",
			strings.Replace(signature, "func(", fmt.Sprintf("func f%d(", i), 1), island(c, n))
	}
	var src strings.Builder
	src.WriteString("package docs\n\n")
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		fmt.Fprintf(&src, "import %q\n", p)
	}
	src.WriteString("func use(any) {}\n")
	src.WriteString("var program *exprvm.Program\n")
	src.WriteString("var _ context.Context; var _ url.URL; var _ time.Time\n")
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
	config := types.Config{Importer: packages()}
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
		code, errs := compile(src, env, Want(uint(want)%3))
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

// TestLetNamedCtx asks for the identity in a context that the expression itself calls ctx, which is not the context of the call.
func TestLetNamedCtx(t *testing.T) {
	env := *fixture(t)
	ctx, _ := Context(env.Params)
	env.Params = slices.Clone(env.Params)
	env.Params[ctx].Name = "own"
	code, errs := compile("let ctx = own; map([1], clientIP(ctx))[0]", &env, Island)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if text := show(code, names(&env)); code.Identity != "" || !strings.Contains(text, "program.Text(own, ") {
		t.Errorf("got %s", text)
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
	for name, c := range map[string]types.Type{"comparable": types.Universe.Lookup("comparable").Type(), "stringer": constraint} {
		k := types.NewTypeParam(types.NewTypeName(0, pkg, "K", nil), c)
		env := &Env{From: reach.From{Package: pkg}, Params: []Param{{"key", k}}}
		code, errs := compile("key", env, Island)
		switch {
		case code == nil:
			t.Errorf("%s: %v", name, errs)
		case name == "comparable" && code.Program == nil:
			t.Error("comparable: it is known before a call comes what the key is")
		case name == "stringer" && show(code, names(env)) != "=> wrap.NotNil(key).String()\nfails":
			t.Errorf("stringer: got %s", show(code, names(env)))
		}
	}
}

// TestHidden uses members that expr cannot access: unexported ones, pointer methods of values, and fields that a tag hides.
func TestHidden(t *testing.T) {
	env := fixture(t)
	for src, want := range map[string]string{
		"one([doc], .owner == .Owner)":        "*example.com/docs.Document.owner",
		"one([val], .Tenant() == .ID)":        "example.com/docs.Document.Tenant",
		"one([doc], .Tenant() == .Key())":     "",
		"one([tags()], .Secret == .Owner)":    "*example.com/docs.Tagged.Secret",
		"one([doc], .owner == doc.owner)":     "*example.com/docs.Document.owner",
		"one([val.Plain], .Up() == doc.Meta)": "example.com/docs.Meta.Up",
	} {
		code, errs := compile(src, env, Bool)
		if code == nil {
			t.Errorf("%s: %v", src, errs)
			continue
		}
		var got []string
		for _, h := range code.Program.Hidden {
			got = append(got, h.Of.String()+"."+h.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", src, got, want)
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
