//go:build wild

package generator_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// wild has the modules, and their packages, whose interfaces are wrapped. They are large, widely used, and unlike each other.
var wild = []struct{ module, version, packages string }{
	{"std", "", "std"},
	{"k8s.io/client-go", "v0.37.2", "k8s.io/client-go/..."},
	{"github.com/aws/aws-sdk-go-v2/service/s3", "v1.114.7", "github.com/aws/aws-sdk-go-v2/service/s3/..."},
	{"github.com/aws/aws-sdk-go-v2/service/dynamodb", "v1.73.0", "github.com/aws/aws-sdk-go-v2/service/dynamodb/..."},
	{"google.golang.org/grpc", "v1.85.0", "google.golang.org/grpc/..."},
	{"github.com/prometheus/client_golang", "v1.25.0", "github.com/prometheus/client_golang/..."},
	{"go.opentelemetry.io/otel", "v1.47.0", "go.opentelemetry.io/otel/..."},
	{"go.opentelemetry.io/otel/sdk", "v1.47.0", "go.opentelemetry.io/otel/sdk/..."},
	{"go.uber.org/zap", "v1.28.0", "go.uber.org/zap/..."},
	{"gorm.io/gorm", "v1.31.2", "gorm.io/gorm/..."},
	{"entgo.io/ent", "v0.14.5", "entgo.io/ent/..."},
	{"github.com/redis/go-redis/v9", "v9.23.0", "github.com/redis/go-redis/v9/..."},
	{"github.com/nats-io/nats.go", "v1.55.0", "github.com/nats-io/nats.go/..."},
	{"github.com/minio/minio-go/v7", "v7.4.1", "github.com/minio/minio-go/v7/..."},
	{"github.com/jackc/pgx/v5", "v5.12.0", "github.com/jackc/pgx/v5/..."},
	{"go.mongodb.org/mongo-driver/v2", "v2.9.3", "go.mongodb.org/mongo-driver/v2/..."},
	{"go.etcd.io/etcd/client/v3", "v3.7.3", "go.etcd.io/etcd/client/v3/..."},
	{"github.com/spf13/afero", "v1.15.0", "github.com/spf13/afero/..."},
	{"github.com/go-chi/chi/v5", "v5.5.0", "github.com/go-chi/chi/v5/..."},
	{"github.com/labstack/echo/v4", "v4.16.0", "github.com/labstack/echo/v4/..."},
}

// refusals match the error messages that are right for some interfaces. All other errors are failures.
var refusals = map[string]*regexp.Regexp{
	"it has unexported methods":             regexp.MustCompile(`cannot be implemented outside of package`),
	"no method of it returns an error":      regexp.MustCompile(`this rule applies to no method of`),
	"it is a constraint":                    regexp.MustCompile(`is a constraint: there are no values of it to wrap`),
	"its signatures need unexported types":  regexp.MustCompile(`, which is not exported`),
	"its signatures need internal packages": regexp.MustCompile(`, which is internal to another module or folder`),
}

// TestWild wraps all exported interfaces of the standard library and of the modules above, with a rule on the type. Each is wrapped as
// an interface that embeds it, and as one that lists its methods if another package can name their types. The output is vetted.
func TestWild(t *testing.T) {
	root := newModule(t, "example.com/wild")
	t.Setenv("GOFLAGS", "-mod=mod") // go.mod and go.sum are completed as need be
	t.Setenv("GOWORK", "off")
	args := []string{"get"}
	for _, m := range wild {
		if m.version != "" {
			args = append(args, m.module+"@"+m.version)
		}
	}
	goIn(t, root, args...)
	total := census{}
	for i, m := range wild {
		t.Run(m.module, func(t *testing.T) {
			start := time.Now()
			b := &batch{root: root, dir: fmt.Sprint("m", i), census: census{}}
			b.collect(t, m.packages)
			b.generate(t)
			goIn(t, root, "vet", "./"+b.dir+"/...")
			t.Logf("%s\n%s", time.Since(start).Round(time.Second), b.census)
			total.add(b.census)
		})
	}
	t.Logf("in all:\n%s", total)
}

// census counts interfaces by their results.
type census map[string]int

func (c census) add(o census) {
	for what, n := range o {
		c[what] += n
	}
}

func (c census) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%7d %s\n", c[what], what)
	}
	return b.String()
}

// batch has the files that are generated in one run.
type batch struct {
	root, dir string
	files     []*wildFile
	census    census
}

// wildFile is a file of interfaces of one package.
type wildFile struct {
	path, name string // of the file, and of its package
	imports    map[string]string
	interfaces []*specimen
	lines      []int // where each of the interfaces begins, once written
}

// specimen is the text of an interface.
type specimen struct{ name, text string }

// collect returns the files for the interfaces of packages.
func (b *batch) collect(t *testing.T, pattern string) {
	exports, order := map[string]string{}, []string{}
	for line := range strings.Lines(string(goIn(t, b.root, "list", "-export", "-e", "-f", "{{.ImportPath}}\t{{.Name}}\t{{.Export}}", pattern))) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) == 3 && f[1] != "main" && accessible(f[0]) {
			exports[f[0]], order = f[2], append(order, f[0])
		}
	}
	packages := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, path := range order {
		pkg, err := packages.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for kind, write := range map[string]func(*wildFile, *types.TypeName) string{"named": embedded, "spelt": spelt} {
			f := &wildFile{path: filepath.Join(b.root, b.dir, kind, path, "wild.go"), name: pkg.Name(), imports: map[string]string{}}
			for _, name := range pkg.Scope().Names() {
				o, ok := pkg.Scope().Lookup(name).(*types.TypeName)
				if !ok || !o.Exported() || !types.IsInterface(o.Type()) {
					continue
				}
				b.census["interfaces, "+kind]++
				if text := write(f, o); text == "" {
					b.census["not spelt: another package cannot write its methods"]++
				} else {
					f.interfaces = append(f.interfaces, &specimen{name, text})
				}
			}
			if len(f.interfaces) > 0 {
				b.files = append(b.files, f)
			}
		}
	}
}

// accessible reports whether other modules may import path.
func accessible(path string) bool {
	return !strings.Contains("/"+path+"/", "/internal/") && !strings.HasPrefix(path, "vendor/") && path != "unsafe" && path != "builtin"
}

// qualify returns the name of a package in f.
func (f *wildFile) qualify(p *types.Package) string {
	if f.imports[p.Path()] == "" {
		f.imports[p.Path()] = "p" + strconv.Itoa(len(f.imports))
	}
	return f.imports[p.Path()]
}

// embedded writes an interface that embeds o.
func embedded(f *wildFile, o *types.TypeName) string {
	params, args, ok := parameters(f, o)
	if !ok {
		return ""
	}
	return fmt.Sprintf("type %s%s interface{ %s.%s%s }", o.Name(), params, f.qualify(o.Pkg()), o.Name(), args)
}

// parameters writes the type parameters of o, as declared and as used.
func parameters(f *wildFile, o *types.TypeName) (declared, used string, ok bool) {
	t, isGeneric := o.Type().(interface{ TypeParams() *types.TypeParamList })
	if !isGeneric || t.TypeParams().Len() == 0 {
		return "", "", true
	}
	var params, args []string
	for p := range t.TypeParams().TypeParams() {
		constraint, ok := write(f, p.Constraint())
		if !ok {
			return "", "", false
		}
		params, args = append(params, p.Obj().Name()+" "+constraint), append(args, p.Obj().Name())
	}
	return "[" + strings.Join(params, ", ") + "]", "[" + strings.Join(args, ", ") + "]", true
}

// spelt writes an interface with the methods of o.
func spelt(f *wildFile, o *types.TypeName) string {
	imports := maps.Clone(f.imports)
	iface := o.Type().Underlying().(*types.Interface)
	params, _, ok := parameters(f, o)
	ok = ok && iface.IsMethodSet()
	var b strings.Builder
	fmt.Fprintf(&b, "type %s%s interface {\n", o.Name(), params)
	for m := range iface.Methods() {
		text, possible := write(f, m.Type())
		ok = ok && possible && m.Exported()
		fmt.Fprintf(&b, "\t%s%s\n", m.Name(), strings.TrimPrefix(text, "func"))
	}
	if !ok {
		f.imports = imports
		return ""
	}
	return b.String() + "}"
}

var unexported = regexp.MustCompile(`\bp\d+\.[^\p{Lu}]`)

// write returns the text of a type. If another package cannot name the type, ok is false.
func write(f *wildFile, t types.Type) (text string, ok bool) {
	ok = true
	text = types.TypeString(t, func(p *types.Package) string {
		ok = ok && accessible(p.Path()) && p.Name() != "main"
		return f.qualify(p)
	})
	return text, ok && !unexported.MatchString(text)
}

// source returns the text of f, and records the lines of its interfaces.
func (f *wildFile) source() []byte {
	var b bytes.Buffer
	f.lines = nil
	fmt.Fprintf(&b, "package %s\n\nimport (\n", f.name)
	all := ""
	for _, s := range f.interfaces {
		all += s.text
	}
	for _, path := range slices.Sorted(maps.Keys(f.imports)) {
		if regexp.MustCompile(`\b` + f.imports[path] + `\.`).MatchString(all) {
			fmt.Fprintf(&b, "\t%s %q\n", f.imports[path], path)
		}
	}
	b.WriteString(")\n")
	for _, s := range f.interfaces {
		f.lines = append(f.lines, 1+bytes.Count(b.Bytes(), []byte("\n")))
		fmt.Fprintf(&b, "\n//ratelimit:rule limit=1 per=1m\n%s\n", s.text)
	}
	return b.Bytes()
}

// generate writes the wrappers of all files, without the interfaces that are refused for a good reason.
func (b *batch) generate(t *testing.T) {
	for range 4 { // an error may hide others
		for _, f := range b.files {
			testmodule.Write(t, f.path, f.source())
		}
		result, err := generator.Generate(t.Context(), generator.Config{Dir: b.root, Patterns: []string{"./" + b.dir + "/..."}})
		if err != nil {
			b.refuse(t, err)
			continue
		}
		if _, err := generator.Write(result.Files); err != nil {
			t.Fatal(err)
		}
		for _, f := range b.files {
			b.census["wrapped"] += len(f.interfaces)
		}
		return
	}
	t.Fatal("errors do not end")
}

var located = regexp.MustCompile(`^(.+?\.go):(\d+):\d+: (.*)$`)

// refuse removes the interfaces that err is about.
func (b *batch) refuse(t *testing.T, err error) {
	out := map[*specimen]bool{}
	errs, ok := errors.AsType[generator.Errors](err)
	if !ok {
		t.Fatal(err)
	}
	for _, message := range errs {
		line := message.String()
		m := located.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("no position: %s", line)
			continue
		}
		s := b.at(m[1], m[2])
		if s == nil {
			t.Fatalf("of no interface: %s", line)
		}
		reason := ""
		for r, message := range refusals {
			if message.MatchString(m[3]) {
				reason = "refused: " + r
			}
		}
		switch {
		case reason == "":
			reason = "failed"
			t.Errorf("%s\nfor\n%s", line, s.text)
		case strings.HasPrefix(reason, "refused: its signatures"): // an exported alias might do
			t.Log(m[3])
		}
		if !out[s] {
			b.census[reason]++
		}
		out[s] = true
	}
	if len(out) == 0 {
		t.FailNow()
	}
	for _, f := range b.files {
		f.interfaces = slices.DeleteFunc(f.interfaces, func(s *specimen) bool { return out[s] })
	}
	b.files = slices.DeleteFunc(b.files, func(f *wildFile) bool {
		if len(f.interfaces) == 0 {
			os.Remove(f.path)
		}
		return len(f.interfaces) == 0
	})
}

// at returns the interface at a line of a file.
func (b *batch) at(path, line string) *specimen {
	n, _ := strconv.Atoi(line)
	for _, f := range b.files {
		if f.path != filepath.Join(b.root, path) {
			continue
		}
		for i := len(f.lines) - 1; i >= 0; i-- {
			if f.lines[i] <= n {
				return f.interfaces[i]
			}
		}
	}
	return nil
}
