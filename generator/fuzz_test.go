package generator

import (
	"encoding/binary"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// FuzzGenerate generates from the corpus with words deleted, doubled, replaced and swapped. It checks that nothing panics, that errors
// have positions in the source, and that the generated code compiles together with its source.
func FuzzGenerate(f *testing.F) {
	for _, src := range corpus(f) {
		f.Add(src, []byte{})
	}
	world := newWorld(f)
	f.Fuzz(func(t *testing.T, src string, mutations []byte) {
		if len(src) > 10_000 || len(mutations) > 10*mutationSize {
			return
		}
		world.generate(t, mutated(src, mutations))
	})
}

var mutations = flag.Int("mutations", 3000, "how many mutated sources TestMutations tries")

// TestMutations makes the checks of FuzzGenerate with a few random mutations, which are close to valid source.
func TestMutations(t *testing.T) {
	world, sources := newWorld(t), corpus(t)
	for i := range *mutations {
		random := rand.New(rand.NewPCG(uint64(*mutations), uint64(i)))
		change := make([]byte, mutationSize*(1+random.IntN(4)))
		for i := range change {
			change[i] = byte(random.Uint32())
		}
		world.generate(t, mutated(sources[random.IntN(len(sources))], change))
	}
}

// corpus returns the annotated Go files of the scenarios.
func corpus(t testing.TB) []string {
	archives, err := filepath.Glob("../testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no scenarios", err)
	}
	var sources []string
	for _, path := range archives {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range a.Files {
			if strings.HasSuffix(file.Name, ".go") && strings.Contains(string(file.Data), "//ratelimit:") {
				sources = append(sources, string(file.Data))
			}
		}
	}
	files, err := filepath.Glob("../testdata/errors/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, path := range files {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, string(src))
	}
	return append(sources, ofC)
}

// ofC has types of C.
const ofC = `package x

import "C"

type Num C.int

type Pair struct{ a, b C.int }

//ratelimit:rule name=x limit=1 per=1m key="{label(n)}"
type Calls interface {
	A(n Num) (Num, *Num, Pair, error)
	B(n Num, f func(Num) C.long) error
}

//ratelimit:rule limit=1 per=1m
func (p *Pair) Sum(n Num) (Num, error) { return 0, nil }

func (p Pair) C() C.int { return p.a }

func label(n Num) string { return "" }
`

const mutationSize = 5 // bytes

var word = regexp.MustCompile(`[\pL_][\pL\pN_]*|[0-9]+|\s+|.`)

// words splits source into its tokens and the text between them, and directives into their words.
func words(src string) []string {
	var out []string
	file := token.NewFileSet().AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, []byte(src), nil, scanner.ScanComments)
	end := 0
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return append(out, src[end:])
		}
		at := file.Offset(pos)
		if tok == token.SEMICOLON && text == "\n" || at < end {
			continue
		}
		if at > end {
			out = append(out, src[end:at])
		}
		if text == "" {
			text = tok.String()
		}
		end = min(at+len(text), len(src))
		if strings.HasPrefix(text, "//ratelimit:") {
			out = append(out, word.FindAllString(src[at:end], -1)...)
		} else {
			out = append(out, src[at:end])
		}
	}
}

// mutated applies mutations. Each has five bytes: the kind, and the indices of two words.
func mutated(src string, mutations []byte) string {
	all := words(src)
	for ; len(mutations) >= mutationSize; mutations = mutations[mutationSize:] {
		i := int(binary.LittleEndian.Uint16(mutations[1:])) % len(all)
		j := int(binary.LittleEndian.Uint16(mutations[3:])) % len(all)
		switch mutations[0] % 4 {
		case 0:
			all[i] = ""
		case 1:
			all[i] += all[i]
		case 2:
			all[i], all[j] = all[j], all[i]
		case 3:
			all[i] = all[j]
		}
	}
	return strings.Join(all, "")
}

// world holds the packages that sources can import.
type world struct {
	fset     *token.FileSet
	importer types.Importer
}

// newWorld loads the packages of the standard library that the corpus imports, and those that generated code imports.
var newWorld = func() func(testing.TB) *world {
	var once sync.Once
	w := &world{fset: token.NewFileSet()}
	return func(t testing.TB) *world {
		once.Do(func() {
			out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "context", "cmp", "errors", "fmt",
				"html/template", "io", "io/fs", "net/http", "net/netip", "net/url", "reflect", "strings", "text/template", "time", "time/tzdata",
				"math", "math/bits", "slices", "strconv", "testing", "go/ast", "sync", "unsafe",
				"github.com/ratelimit-go/ratelimit/runtime", "github.com/ratelimit-go/ratelimit/runtime/wrap", "unicode/utf8", "maps", "regexp").Output()
			if err != nil {
				t.Fatal(err)
			}
			exports := map[string]string{}
			for line := range strings.Lines(string(out)) {
				path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
				exports[path] = file
			}
			w.importer = importer.ForCompiler(w.fset, "gc", func(path string) (io.ReadCloser, error) {
				if exports[path] == "" {
					return nil, fmt.Errorf("no package %s", path)
				}
				return os.Open(exports[path])
			})
		})
		return w
	}
}()

// another is a valid file in the same package as the mutated one.
const another = "package x\n\n//ratelimit:rule limit=1 per=1m\ntype Beside interface{ M() error }\n"

// generate generates from a source, and from the same with every other method in a file of a platform.
func (w *world) generate(t *testing.T, src string) {
	w.generateFrom(t, src, "")
	if rest, moved := apart(src); moved != "" {
		w.generateFrom(t, rest, moved)
	}
}

// apart moves every other method of a source that has no syntax errors to another file, which has the same imports.
func apart(src string) (rest, moved string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return src, ""
	}
	cut := func(from, to token.Pos) string {
		return src[fset.PositionFor(from, false).Offset:fset.PositionFor(to, false).Offset]
	}
	end := f.FileStart
	for i, m := range source.Methods(f) {
		if i%2 == 0 {
			from := m.Pos()
			if m.Doc != nil {
				from = m.Doc.Pos()
			}
			moved, rest, end = moved+"\n"+cut(from, m.End())+"\n", rest+cut(end, from), m.End()
		}
	}
	if moved == "" {
		return src, ""
	}
	imports := ""
	for _, d := range f.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			imports += cut(d.Pos(), d.End()) + "\n"
		}
	}
	return rest + cut(end, f.FileEnd), "package " + f.Name.Name + "\n" + imports + moved
}

// generateFrom generates from a source, and from another file for one platform, if that is not "".
func (w *world) generateFrom(t *testing.T, src, onLinux string) {
	syntax, err := parser.ParseFile(w.fset, "/x/x.go", src, parser.ParseComments|parser.SkipObjectResolution)
	if syntax == nil {
		return
	}
	files := []*source.File{{Path: "/x/x.go", Syntax: syntax, Asked: err == nil}}
	defer func() {
		for _, f := range files {
			w.fset.RemoveFile(w.fset.File(f.Syntax.FileStart))
		}
	}()
	if err != nil { // what is left of it stands beside another one
		beside, err := parser.ParseFile(w.fset, "/x/y.go", another, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, &source.File{Path: "/x/y.go", Syntax: beside, Asked: true})
	}
	if onLinux != "" {
		part, err := parser.ParseFile(w.fset, "/x/x_linux.go", onLinux, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%v\n%s", err, onLinux)
		}
		files, src = append(files, &source.File{Path: "/x/x_linux.go", Syntax: part}), src+"\nx_linux.go:\n"+onLinux
	}
	pkg := &source.Package{Path: "example.com/x", Module: "example.com", Files: files, Info: source.NewInfo(), Loader: w}
	pkg.Types = w.check(pkg, func(e types.Error) {
		pkg.Errors = append(pkg.Errors, annotations.Diagnostic{Pos: e.Pos, Msg: e.Msg})
	})
	if pkg.Types == nil {
		return
	}
	r := &run{dir: "/x", set: &load.Set{Fset: w.fset, Packages: slices.Values([]*source.Package{pkg})}}
	r.generate(t.Context())
	for _, e := range r.found {
		if w.fset.File(e.Pos) == nil || w.fset.File(e.Pos).Name()[:3] != "/x/" {
			t.Errorf("no position: %s\n%s", e.Msg, src)
		}
	}
	for _, e := range r.found {
		if strings.HasPrefix(e.Msg, "internal error") || e.Code == "output" && len(pkg.Errors) == 0 && !unavoidable.MatchString(e.Msg) {
			t.Fatalf("%s\n%s", e.Msg, src)
		}
	}
}

// unavoidable matches the reasons why generated code may not compile although the package and its directives are right.
var unavoidable = regexp.MustCompile(`is not a generic type|redeclared`)

// check type-checks the declarations of files. It returns nil if go/types panics, which package load reports as an error.
func (w *world) check(p *source.Package, report func(types.Error)) (pkg *types.Package) {
	defer func() {
		if recover() != nil {
			pkg = nil
		}
	}()
	conf := types.Config{IgnoreFuncBodies: true, FakeImportC: true, DisableUnusedImportCheck: true, Importer: w.importer, Error: func(err error) {
		if e, ok := err.(types.Error); ok {
			report(e)
		}
	}}
	var syntax []*ast.File
	for _, f := range p.Files {
		syntax = append(syntax, f.Syntax)
	}
	pkg, _ = conf.Check("example.com/x", w.fset, syntax, p.Info)
	return pkg
}

// Compile implements source.Loader. It does not check outputs of a package that has errors itself.
func (w *world) Compile(p *source.Package, outputs []*source.File) (errs []types.Error) {
	conf := types.Config{FakeImportC: true, Importer: w.importer, Error: func(err error) {
		e, ok := err.(types.Error)
		if ok && slices.ContainsFunc(outputs, func(o *source.File) bool { return o.Syntax.FileStart <= e.Pos && e.Pos < o.Syntax.FileEnd }) {
			errs = append(errs, e)
		}
	}}
	var syntax []*ast.File
	for _, f := range slices.Concat(p.Files, outputs) {
		syntax = append(syntax, f.Syntax)
	}
	_, _ = conf.Check(p.Path, w.fset, syntax, nil)
	return errs
}
