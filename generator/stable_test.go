package generator_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// stable has a line <n> wherever a rule may be added.
const stable = `package x

import "context"

type Sender interface {
	//ratelimit:rule key="{phone}" limit=1 per=1m
	<0>
	Send(ctx context.Context, phone string) error
	//ratelimit:rule limit=2 per=1m message="Too many for {s}."
	<1>
	Sum(ctx context.Context, s, phone string) (n int, err error)
	Close(phone string) error
}

//ratelimit:rule name=service limit=5 per=1m
type Service struct{}

//ratelimit:rule limit=3 per=1m
<2>
func (s *Service) Do(ctx context.Context, phone string) error { return nil }

func (s *Service) Undo(phone string) error { return nil }
`

// added are rules that need more of the generated code than a simple one: packages, variables, statements, another function.
var added = []string{
	"limit=7 per=1h",
	"name=added cron=@daily tz=Asia/Tokyo key={phone} limit=7",
	`limit="len(phone)" cost="len(phone) + 1" when="phone matches '^a'" per=1h`,
	`refund=error limit=7 per=1h message="Not {phone}, {string(len(phone))}."`,
	"name=added limit=7 per=1h wait=3s",
}

// TestNewRuleChangesItsMethodAlone adds a rule to a method. In the generated file, nothing changes but the variables and the
// declaration of that method, and what is imported.
func TestNewRuleChangesItsMethodAlone(t *testing.T) {
	t.Parallel()
	methods := []string{"Sender.Send", "Sender.Sum", "Service.Do"}
	sources := map[string]string{"stable": stable}
	for place := range methods {
		for i, rule := range added {
			sources[fmt.Sprintf("stable%d_%d", place, i)] = strings.Replace(stable, fmt.Sprintf("<%d>", place), "//ratelimit:rule "+rule, 1)
		}
	}
	found := declarations(t, sources)
	before := found["stable"]
	for place, method := range methods {
		variables := "var " + strings.ToLower(method[:1]) + strings.Replace(method[1:], ".", "", 1)
		for i, rule := range added {
			after := found[fmt.Sprintf("stable%d_%d", place, i)]
			for name, text := range after {
				if text != before[name] && name != "import" && name != method && !strings.HasPrefix(name, variables) {
					t.Errorf("with %q on %s, %s is now\n%s\nand was\n%s", rule, method, name, text, before[name])
				}
			}
			if after[method] == "" || !slices.Equal(funcs(after), funcs(before)) {
				t.Errorf("with %q on %s there are %v, before %v", rule, method, funcs(after), funcs(before))
			}
		}
	}
}

// funcs returns the names of declarations that are no variables.
func funcs(declarations map[string]string) (names []string) {
	for name := range maps.Keys(declarations) {
		if !strings.HasPrefix(name, "var ") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// declarations generates from sources, each in a package of its own, and returns the texts of the declarations of each by their names.
func declarations(t *testing.T, sources map[string]string) map[string]map[string]string {
	t.Helper()
	root := newModule(t, "example.com/stable")
	for name, src := range sources {
		for place := range 3 {
			src = strings.Replace(src, fmt.Sprintf("<%d>", place), "//", 1)
		}
		testmodule.Write(t, filepath.Join(root, name, "x.go"), src)
	}
	result, err := generator.Generate(t.Context(), generator.Config{Dir: root, Patterns: []string{"./..."}})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]string{}
	for _, f := range result.Files {
		name := filepath.Base(filepath.Dir(f.Name))
		all[name] = declarationsIn(t, strings.ReplaceAll(string(f.Source), `"`+name+".", `"stable.`))
	}
	return all
}

// declarationsIn returns the text of each declaration of a file by its name.
func declarationsIn(t *testing.T, out string) map[string]string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", out, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found, begin := map[string]string{}, fset.Position(file.Name.End()).Offset
	for _, d := range file.Decls {
		end := fset.Position(d.End()).Offset
		found[nameOf(d)], begin = out[begin:end], end // with its comment
	}
	return found
}

// nameOf returns the name of a declaration; that of a method is Sender.Send for *LimitedSender.
func nameOf(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		return strings.TrimPrefix(d.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name, "Limited") + "." + d.Name.Name
	case *ast.GenDecl:
		switch s := d.Specs[0].(type) {
		case *ast.TypeSpec:
			return "type " + s.Name.Name
		case *ast.ValueSpec:
			return "var " + s.Names[0].Name
		}
	}
	return "import"
}
