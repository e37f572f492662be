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
	"github.com/ratelimit-go/ratelimit/generator/internal/compile"
	"github.com/ratelimit-go/ratelimit/generator/internal/doubt"
	"github.com/ratelimit-go/ratelimit/generator/internal/emit"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
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
	set, err := load.Load(ctx, load.Config{Dir: dir, Patterns: patterns, Tags: cfg.Tags})
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

// generate passes a package from stage to stage. After an error the next stages still run, as they may find more errors, but no
// file is generated.
func (d *done) generate(fset *token.FileSet, p *source.Package) (found annotations.Diagnostics) {
	defer p.NoteFault(&found)
	pkg, found := collect.Package(fset, p)
	errs := compile.Package(pkg)
	if slices.ContainsFunc(errs, isUnknownName) {
		errs = append(errs, p.Unimported().Coded("load")...) // the name may be that of a package that cannot be imported
	}
	checked, counts := doubt.Package(fset, pkg)
	found = slices.Concat(found, errs, checked)
	if d.counts = counts; found.HasErrors() {
		return found
	}
	files, faults := emitted(pkg)
	d.files, d.rules = files, rulesOf(fset, pkg)
	return slices.Concat(found, faults.Coded("internal"), uncompilable(fset, p, pkg, files).Coded("output"))
}

// isUnknownName reports whether e is about an unknown name that no known name is close to.
func isUnknownName(e annotations.Diagnostic) bool {
	return e.Unknown.Name != "" && e.Unknown.Suggestion == ""
}

// emitted returns the generated files of a package, and the files to remove.
func emitted(p *model.Package) (files []File, faults annotations.Diagnostics) {
	for _, f := range p.Files {
		if len(f.Wrappers) == 0 {
			if src, err := os.ReadFile(f.Output); err == nil && source.IsOutput(f.Output, src) {
				files = append(files, File{Name: f.Output})
			}
			continue
		}
		src, err := emit.File(p, f)
		if err != nil {
			faults.Add(f.Wrappers[0].Pos, "internal error: %v", err)
		}
		files = append(files, File{Name: f.Output, Source: src})
	}
	return files, faults
}
