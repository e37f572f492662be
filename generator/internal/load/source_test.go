package load

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// sourceAndExports checks packages from source, and returns them with an importer of the export data of the compiler.
func sourceAndExports(t *testing.T, dir string, paths ...string) (*dependencies, types.Importer) {
	t.Helper()
	l := &loader{ctx: t.Context(), cfg: Config{Dir: dir}, set: &Set{Fset: token.NewFileSet()}}
	pkgs, err := l.list(metadata, false, paths)
	if err != nil {
		t.Fatal(err)
	}
	d := newDependencies(l)
	for _, p := range pkgs {
		d.askExported(d.source(p))
	}
	d.settle()
	compiled, err := l.list(packages.NeedName|packages.NeedExportFile|packages.NeedImports|packages.NeedDeps, false, paths)
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	packages.Visit(compiled, nil, func(p *packages.Package) { exports[p.PkgPath] = p.ExportFile })
	return d, importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
}

// compilerResult matches the names that the compiler gives to unnamed results of functions that range over a function.
var compilerResult = regexp.MustCompile(`\(#rv1 ([^()]*)\)`)

// compare compares the objects that were checked from source with those of the compiler, and returns how many it compared.
func compare(t *testing.T, d *dependencies, compiled types.Importer) (n int) {
	t.Helper()
	for path, s := range d.sources {
		if s.checker == nil {
			continue
		}
		want, err := compiled.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range s.types.Scope().Names() {
			o := want.Scope().Lookup(name)
			if o == nil && !token.IsExported(name) {
				continue // the compiler leaves it out
			}
			if n++; o == nil {
				t.Errorf("%s.%s: the compiler has none", path, name)
				continue
			}
			got, want := describe(s.types.Scope().Lookup(name), s.isRuntime()), describe(o, s.isRuntime())
			for i, line := range want {
				want[i] = compilerResult.ReplaceAllString(line, "$1")
			}
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Errorf("%s.%s: got\n%q\nexpected\n%q", path, name, got[min(i, len(got)):], want[min(i, len(want)):])
					break
				}
			}
		}
		for _, name := range want.Scope().Names() {
			if slices.ContainsFunc(s.named[name], func(n *declaration) bool { return n.taken }) && s.types.Scope().Lookup(name) == nil {
				t.Errorf("%s.%s is missing", path, name)
			}
		}
	}
	return n
}

// describe returns everything about o as text. If it is of the runtime, it returns only what other packages can name.
func describe(o types.Object, ofRuntime bool) []string {
	lines := []string{types.ObjectString(o, nil)}
	switch o := o.(type) {
	case *types.Const:
		lines = append(lines, o.Val().ExactString())
	case *types.TypeName:
		under := o.Type().Underlying()
		if t, ok := under.(*types.Struct); ok && ofRuntime {
			fields := slices.DeleteFunc(slices.Collect(t.Fields()), func(f *types.Var) bool { return !f.Exported() && !f.Embedded() })
			lines, under = []string{o.Name()}, types.NewStruct(fields, nil)
		}
		lines = append(lines, fmt.Sprint(o.IsAlias(), types.TypeString(under, nil)))
		for s := range types.NewMethodSet(types.NewPointer(o.Type())).Methods() {
			if s.Obj().Exported() || !ofRuntime || types.IsInterface(o.Type()) {
				lines = append(lines, types.SelectionString(s, nil))
			}
		}
	}
	return lines
}

// TestSourceIsAsCompiled compares packages of the standard library and of modules with their export data.
func TestSourceIsAsCompiled(t *testing.T) {
	d, compiled := sourceAndExports(t, ".", "context", "database/sql", "go/types", "log/slog", "maps", "math", "net", "net/http",
		"os/user", "plugin", "reflect", "runtime", "sync/atomic", "syscall", "testing", "text/template", "unicode", "unsafe",
		"github.com/dave/jennifer/jen", "github.com/expr-lang/expr", "github.com/redis/go-redis/v9", "golang.org/x/tools/go/packages", names.Runtime, names.Wrap)
	if n := compare(t, d, compiled); n < 5000 {
		t.Errorf("only %d objects were compared", n)
	}
}

// TestSourceOfRareDeclarations compares a package of rare declarations with its export data.
func TestSourceOfRareDeclarations(t *testing.T) {
	dir := module(t, "a/a.go", `package a

import (
	. "strings"
	t "time"
	"unsafe"

	"example.com/m/b"
)

type T struct {
	*b.Embedded[t.Duration]
	Builder
	array  [len(b.Names) + b.Third]int
	time   struct{ b b.Hidden }
	bytes  [unsafe.Sizeof(b.Hidden{})]byte
}

type (
	short   = T
	pointer = *T
)

func (pointer) Pointed() {}
func (s *short) Aliased(t *t.Time) (b, c *b.Hidden) { return }
func (*T) Unnamed()
func (T) Literal(func(struct{ X b.Hidden })) struct{} { return struct{}{} }

type Pair[K ~int | b.Number, V interface{ b.Number; comparable }] struct{ Key K; Value V }

func (p *Pair[_, V]) Get(_ V) (x Pair[int, V]) { return }

type Ints = Pair[int, int]
type Set[E comparable] = map[E]struct{}

const (
	_, First = iota, iota * Size
	_, Next
	Size = 1 << (10 * b.Third)
	_, Last = iota, iota
)

var (
	Inferred, other = b.Two(func() int { type x struct{}; return 0 })
	Typed    Set[string] = nil
	Function = func(x T) b.Hidden { return x.time.b }
	Of       = map[string]func(){"}": func() {}}
	_        = other
)

func init() {}
func init() {}

var _ = 1
`, "a/a.s", "", "b/b.go", `package b

type (
	Embedded[T any] struct{ base; Value T; hidden }
	Hidden = hidden
	Number interface{ ~int | ~int64 }
)

type base struct{ Base }
type Base interface{ error; Get() string }
type hidden struct{ x uint16 }

func (hidden) Seen() {}

const (
	First = iota + 1
	Second
	Third
)

var Names = [...]string{Second: "x"}

var local struct{ sizes [Third]int }

type Sized [len(local.sizes)]byte

func Two(func() int) (x, y hidden) { return }
`, "b/b_plan9.go", "package b\n\nfunc Two() {}\n", "b/b_test.go", "package b\n\nfunc Two() {}\n",
		"c/c.go", "package c\n\n// typedef struct { int x; } s; typedef unsigned char byte8;\nimport \"C\"\n\n"+
			"type T struct{ s *C.s; Byte C.byte8 }\n\ntype Byte C.byte8\n\nfunc (Byte) Of(x C.int) {}\n")
	d, compiled := sourceAndExports(t, dir, "./a", "./b", "./c")
	if n := compare(t, d, compiled); n < 25 {
		t.Errorf("only %d objects were compared", n)
	}
}

// TestSourceIsLittle asks for one type, and expects that only the declarations which it needs are checked.
func TestSourceIsLittle(t *testing.T) {
	dir := module(t, "x.go", "package x\n\nimport (\n\t\"context\"\n\t\"net/http\"\n)\n\nvar _ = func() { http.Get(\"\") }\n\n"+
		"//ratelimit:rule limit=1 per=1m\ntype X interface{ M(ctx context.Context) error }\n")
	set := load(t, dir, ".")
	var checked []string
	for path, s := range first(set).Loader.(*compilation).sources {
		if s.checker != nil {
			checked = append(checked, path)
		}
	}
	slices.Sort(checked)
	if got, want := strings.Join(checked, " "), "context time"; got != want {
		t.Errorf("%s were checked, expected %s", got, want)
	}
}

// TestAskedWithoutMention finds names that no declaration mentions, but that directives and expressions use.
func TestAskedWithoutMention(t *testing.T) {
	for comment, want := range map[string]string{
		"//ratelimit:fallback b.Push": "Alias Push Type private",
		"// see b.Push":               "",
	} {
		dir := module(t, "x.go", "package x\n\nimport (\n\t_ \"context\"\n\t_ \"example.com/m/b\"\n)\n\n"+
			"//ratelimit:wrap\ntype X interface{\n\t"+comment+"\n\tM() error\n}\n",
			"b/b.go", "package b\n\ntype Alias = private\n\ntype private struct{}\n\nfunc Push() {}\n\ntype Type struct{}\n")
		p := first(load(t, dir, "."))
		d := p.Loader.(*compilation)
		if got := strings.Join(d.sources["example.com/m/b"].types.Scope().Names(), " "); got != want {
			t.Errorf("with %s there are %s, expected %s", comment, got, want)
		}
	}
}

// TestSealed finds all exported interfaces that a wrapper may embed for an unexported method, as vet does, which sees all of a package.
func TestSealed(t *testing.T) {
	for typ, want := range map[string]string{
		"interface{ b.Own }": "Alias Embeds Loop Of Other Own Twice sealed",
		"struct{ b.Struct }": "Alias Embeds Loop Of Other Own Struct Twice sealed",
	} {
		dir := module(t, "x.go", "package x\n\nimport \"example.com/m/b\"\n\n//ratelimit:rule limit=1 per=1m\ntype X "+typ+"\n",
			"b/b.go", "package b\n\ntype sealed interface{ seal() }\n\ntype Own interface{ seal() }\n\ntype Embeds interface{ sealed }\n\n"+
				"type Twice interface{ interface{ Embeds } }\n\ntype Alias = sealed\n\ntype Of Own\n\ntype Other interface{ open() }\n\n"+
				"type Loop interface{ Loop }\n\ntype Struct struct{}\n\nfunc (Struct) seal() {}\n")
		d := first(load(t, dir, ".")).Loader.(*compilation)
		if got := strings.Join(d.sources["example.com/m/b"].types.Scope().Names(), " "); got != want {
			t.Errorf("for %s there are %s, expected %s", typ, got, want)
		}
	}
}
