package generator

import (
	"cmp"
	"context"
	"errors"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/collect"
	"github.com/ratelimit-go/ratelimit/generator/internal/doubt"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/pipeline"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// Config says what to generate.
type Config struct {
	Dir      string   // Patterns, and paths in messages, are relative to it; "" is the working directory
	Patterns []string // packages as for the go command, or Go files; none means the package in Dir
	Tags     string   // build tags, separated by commas
	Strict   bool     // treat warnings as errors
}

// Result holds the generated files and the messages of a run.
type Result struct {
	Files    []File                // sorted by name
	Rules    []Rule                // in source order
	Messages []annotations.Message // sorted by position, including the errors that Generate returns
}

// File is the wanted state of a file.
type File struct {
	Name   string // the absolute path
	Source []byte // nil if the file should be removed, because nothing is generated from its source any more
}

// Errors are the errors in the sources of the packages.
type Errors []annotations.Message

// Error returns one message a line, as file:line:col: text.
func (e Errors) Error() string { return annotations.Join(e) }

// Generate generates the files of the packages. It writes no file. If the sources have errors, it returns an error of type
// [Errors] and a result that has only messages.
func Generate(ctx context.Context, cfg Config) (_ *Result, err error) {
	defer noteFault(&err)
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	patterns := cfg.Patterns
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	loaded := load.Config{Dir: dir, Patterns: patterns, Tags: cfg.Tags, Needs: collect.Needs}
	set, err := load.Load(ctx, loaded)
	r := &run{dir: dir, strict: cfg.Strict, cfg: loaded, set: set}
	if err != nil {
		r.found = set.Found.Coded("load")
		return r.result(), err
	}
	r.generate(ctx)
	if err := ctx.Err(); err != nil {
		return r.result(), err
	}
	if len(r.files)+len(r.found) == 0 {
		r.found.Add(token.NoPos, "no //ratelimit: directives in %s", strings.Join(patterns, " "))
	}
	result := r.result()
	if errs := slices.DeleteFunc(slices.Clone(result.Messages), isNoError); len(errs) > 0 {
		return &Result{Messages: result.Messages}, Errors(errs)
	}
	return result, nil
}

// noteFault turns a panic outside of the stages of a package, which is a bug of the generator, into an error. It must be deferred.
func noteFault(err *error) {
	if fault := recover(); fault != nil {
		*err = errors.New(source.FaultText(fault))
	}
}

func isNoError(m annotations.Message) bool { return m.Severity != annotations.SeverityError }

// run is one call of Generate.
type run struct {
	dir    string
	strict bool
	cfg    load.Config
	set    *load.Set  // of this build
	here   load.Build // this build
	done   []*done
	found  annotations.Diagnostics
	counts []doubt.Count
	files  []File
	rules  []Rule

	varying []string // the paths of files whose outputs depend on types that platforms declare

	gone  []string              // generated files that are to be removed, unless another build has something to generate for them
	made  map[string]*made      // what was generated, by the paths of the outputs
	built map[string]bool       // the paths of the files that were generated from, and of those that cannot be
	left  map[string]load.Build // the paths of the files that builds leave out, and the first such build
	known map[string]bool       // the messages so far, with their positions
	fine  map[string]bool       // the paths of the files that some build has read without errors

	lacking []lacking // the packages that do not compile in a build
}

// done is the result of one source file. It holds no syntax and no types, so that their memory can be freed.
type done struct {
	pkg, source string
	file        File
	rules       []Rule
}

// compare compares the places of d and other: by package, tests last.
func (d *done) compare(other *done) int {
	tests := 0
	if isTest := strings.HasSuffix(d.source, "_test.go"); isTest != strings.HasSuffix(other.source, "_test.go") {
		if tests = -1; isTest {
			tests = 1
		}
	}
	return cmp.Or(strings.Compare(d.pkg, other.pkg), tests, strings.Compare(d.source, other.source))
}

// lacking are files of a package with errors. The package does not compile in a build, because files that the build leaves out declare names.
type lacking struct {
	files []string
	found annotations.Diagnostics
	in    load.Build
}

// made says where a generated file comes from.
type made struct {
	*done
	in load.Build
}

// result returns the result so far. If the run is strict, it turns warnings into errors.
func (r *run) result() *Result {
	for i := range r.found {
		if r.strict && r.found[i].Severity == annotations.SeverityWarning {
			r.found[i].Severity = annotations.SeverityError
		}
	}
	return &Result{Files: r.files, Rules: r.rules, Messages: r.found.Messages(r.set.Fset, r.dir)}
}

// generate generates the files of all packages, for this build and for the others that are needed, and compares the rules of all packages.
func (r *run) generate(ctx context.Context) {
	r.made, r.built, r.left, r.gone = map[string]*made{}, map[string]bool{}, map[string]load.Build{}, r.set.Orphans
	r.here, r.known, r.fine = load.Here(r.cfg.Tags), map[string]bool{}, map[string]bool{}
	r.load(r.set, r.here)
	r.elsewhere(ctx)
	r.compare(ctx)
	slices.SortFunc(r.done, (*done).compare)
	for _, d := range r.done {
		r.files, r.rules = append(r.files, d.file), append(r.rules, d.rules...)
	}
	for _, name := range r.gone {
		if r.made[name] == nil {
			r.files = append(r.files, File{Name: name})
		}
	}
	slices.SortFunc(r.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	r.found = append(r.found, doubt.Shared(r.set.Fset, r.counts)...)
}

// load generates the files of the packages of a set, which was loaded for a build.
func (r *run) load(set *load.Set, in load.Build) {
	for p := range set.Packages {
		r.add(r.pkg(p, in), in)
	}
	r.add(set.Found.Coded("load"), in)
	for _, path := range set.Ignored {
		r.leave(path, in)
	}
}

// pkg generates the files of a package, unless it finds errors.
func (r *run) pkg(p *source.Package, in load.Build) annotations.Diagnostics {
	result := pipeline.Read(r.set.Fset, p)
	for _, path := range result.Model.Elsewhere {
		r.leave(path, in)
	}
	for _, f := range result.Model.Files {
		if src, err := os.ReadFile(f.Output); len(f.Wrappers) == 0 && err == nil && source.IsOutput(f.Output, src) {
			r.gone = append(r.gone, f.Output)
		}
	}
	r.counts = append(r.counts, result.Counts...)
	if result.Found.HasErrors() {
		return r.lack(p, result, in)
	}
	for _, o := range result.Emit() {
		d := &done{p.Path, o.Source, File{Name: o.Output, Source: o.Text}, rulesOf(r.set.Fset, o.File)}
		if r.made[o.Output] == nil {
			r.made[o.Output], r.done = &made{d, in}, append(r.done, d)
		}
		result.Found = append(result.Found, r.differs(o, in)...)
	}
	for _, f := range result.Model.Files {
		if r.built[f.Source], r.fine[f.Source] = true, true; result.Model.Varies && in == r.here {
			r.varying = append(r.varying, f.Source)
		}
	}
	return result.Found
}
