package generator

import (
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
	set, err := load.Load(ctx, load.Config{Dir: dir, Patterns: patterns, Tags: cfg.Tags, Needs: collect.Needs})
	r := &run{dir: dir, strict: cfg.Strict, set: set}
	if err != nil {
		r.found = set.Found.Coded("load")
		return r.result(), err
	}
	r.generate()
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
	set    *load.Set
	done   []*done
	found  annotations.Diagnostics
	files  []File
	rules  []Rule
}

// done is the result of one package. It holds no syntax and no types, so that their memory can be freed.
type done struct {
	path   string
	files  []File
	rules  []Rule
	counts []doubt.Count
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

// generate generates the files of all packages, and compares the rules of all packages.
func (r *run) generate() {
	for p := range r.set.Packages {
		d := &done{path: p.Path}
		r.found = append(r.found, d.generate(r.set.Fset, p)...)
		r.done = append(r.done, d)
	}
	slices.SortFunc(r.done, func(a, b *done) int { return strings.Compare(a.path, b.path) })
	var counts []doubt.Count
	for _, d := range r.done {
		r.files, r.rules, counts = append(r.files, d.files...), append(r.rules, d.rules...), append(counts, d.counts...)
	}
	for _, name := range r.set.Orphans {
		r.files = append(r.files, File{Name: name})
	}
	slices.SortFunc(r.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	r.found = slices.Concat(r.set.Found.Coded("load"), r.found, doubt.Shared(r.set.Fset, counts))
}

// generate generates the files of a package, unless it finds errors.
func (d *done) generate(fset *token.FileSet, p *source.Package) annotations.Diagnostics {
	r := pipeline.Read(fset, p)
	if d.counts = r.Counts; r.Found.HasErrors() {
		return r.Found
	}
	for _, o := range r.Emit() {
		d.files = append(d.files, File{Name: o.Output, Source: o.Text})
	}
	for _, f := range r.Model.Files {
		if src, err := os.ReadFile(f.Output); len(f.Wrappers) == 0 && err == nil && source.IsOutput(f.Output, src) {
			d.files = append(d.files, File{Name: f.Output})
		}
	}
	d.rules = rulesOf(fset, r.Model)
	return r.Found
}
