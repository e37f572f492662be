package expr

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// docs is the package of testdata, type-checked once.
var docs = sync.OnceValues(func() (*types.Package, error) { return check("testdata/docs.go.txt") })

func check(file string) (*types.Package, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	config := types.Config{Importer: importer.Default()}
	return config.Check("example.com/"+tree.Name.Name, fset, []*ast.File{tree}, nil)
}

// signature is the method whose parameters the expressions of the tests use.
const signature = `func(ctx context.Context, phone string, id UserID, n int, n64 int64, u8 uint8, u64 uint64, f float64, f32 float32,
	ok bool, doc *Document, val Document, role Role, level Level, tok Token, name *Name, at time.Time, wait time.Duration, parts []string, ids []int64,
	roles []Role, grid [3]int, labels map[string]string, byID map[UserID]*Document, byAny map[any]string, raw any, err error, who Owner, fn func(int) string,
	note *string, count *int, uints []uint64, u8s []uint8, prices map[string]float64, unused chan int, c64 complex64, u url.URL, up *url.URL, levels []Level, meta *Meta, flag *bool)`

func fixture(t testing.TB) *Env {
	t.Helper()
	pkg, err := docs()
	if err != nil {
		t.Fatal(err)
	}
	scope := types.NewPackage(pkg.Path(), pkg.Name())
	for _, name := range pkg.Scope().Names() {
		scope.Scope().Insert(pkg.Scope().Lookup(name))
	}
	for _, p := range pkg.Imports() {
		scope.Scope().Insert(types.NewPkgName(token.NoPos, scope, p.Name(), p))
	}
	tv, err := types.Eval(token.NewFileSet(), scope, token.NoPos, signature)
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{From: reach.From{Package: pkg}, Method: "docs.Store.Get"}
	for p := range tv.Type.(*types.Signature).Params().Variables() {
		env.Params = append(env.Params, Param{Name: p.Name(), Type: p.Type()})
	}
	return env
}

func compile(src string, env *Env, want Want) (*Code, annotations.Diagnostics) {
	code, errs := Compile(annotations.Expr{Text: annotations.Text{Value: src, Pos: 1}}, env, want)
	if code != nil {
		wanted.Store(code, want)
	}
	return code, errs
}

// wanted has what each code of a test is for.
var wanted sync.Map

// plainNames returns every name unchanged.
type plainNames struct {
	env       *Env
	locals    map[string]int
	imports   map[string]bool   // the paths of what the code names
	variables map[string]string // the values of package-level variables
}

func (p *plainNames) Import(of *types.Package) string {
	p.imports[of.Path()] = true
	return of.Name()
}
func (p *plainNames) Variable(i int) string { return p.env.variables()[i].Name }

func (p *plainNames) Local(hint string) string {
	p.locals[hint]++
	return hint + strings.Repeat("_", p.locals[hint]-1)
}

func (p *plainNames) Package(hint, value string) string {
	for name, known := range p.variables {
		if known == value {
			return name
		}
	}
	name := fmt.Sprint(hint, len(p.variables)+1)
	p.variables[name] = value
	return name
}

// declared returns the declarations of package-level variables.
func declared(variables map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		fmt.Fprintf(&b, "var %s = %s\n", name, variables[name])
	}
	return b.String()
}

func names(env *Env) *plainNames {
	return &plainNames{env: env, locals: map[string]int{}, imports: map[string]bool{}, variables: map[string]string{}}
}

// show returns the code, and whether it may fail.
func show(c *Code, n Names) string {
	written := c.Write(n)
	text := written.Body
	if written.Value != "" {
		text = "=> " + written.Value
	}
	if written.Fails {
		text += "\nfails"
	}
	return text
}

// island returns a func literal that returns the value of the code.
func island(c *Code, n Names) string {
	want, _ := wanted.Load(c)
	result := resultOf[want.(Want)].String()
	return "func() " + result + " {\n" + c.Write(n).Body + "\n}"
}
