// Package pipeline passes a package from stage to stage, for the command and for vet. Package generator draws the stages.
package pipeline

import (
	"go/token"
	"slices"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/collect"
	"github.com/ratelimit-go/ratelimit/generator/internal/compile"
	"github.com/ratelimit-go/ratelimit/generator/internal/doubt"
	"github.com/ratelimit-go/ratelimit/generator/internal/emit"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// Result is what the stages have made of a package.
type Result struct {
	Model  *model.Package
	Counts []doubt.Count // for doubt.Shared, which compares the rules of several packages
	Found  annotations.Diagnostics

	fset   *token.FileSet
	source *source.Package
}

// Output is a generated file.
type Output struct {
	*model.File
	Text []byte
}

// Read reads the directives of a package. After an error the next stages still run, as they may find more errors.
func Read(fset *token.FileSet, p *source.Package) (r *Result) {
	r = &Result{Model: &model.Package{}, fset: fset, source: p}
	defer p.NoteFault(&r.Found)
	pkg, found := collect.Package(fset, p)
	r.Model, r.Found = pkg, found
	errs := compile.Package(pkg)
	if slices.ContainsFunc(errs, isUnknownName) {
		errs = append(errs, p.Unimported().Coded("load")...) // the name may be that of a package that cannot be imported
	}
	doubts, counts := doubt.Package(fset, pkg)
	r.Found, r.Counts = slices.Concat(r.Found, errs, doubts), counts
	return r
}

// isUnknownName reports whether e is about an unknown name that no known name is close to.
func isUnknownName(e annotations.Diagnostic) bool {
	return e.Unknown.Name != "" && e.Unknown.Suggestion == ""
}

// Emit generates the files of the package, and type-checks them if the package has a loader. It must not be called after an error.
func (r *Result) Emit() (outputs []Output) {
	defer r.source.NoteFault(&r.Found)
	for _, f := range r.Model.Files {
		if len(f.Wrappers) == 0 {
			continue
		}
		text, err := emit.File(r.Model, f)
		if err != nil {
			r.add("internal", f.Wrappers[0].Pos, "internal error: %v", err)
			continue
		}
		outputs = append(outputs, Output{f, text})
	}
	if r.source.Loader != nil {
		r.check(outputs)
	}
	return outputs
}

// add adds an error with a code.
func (r *Result) add(code string, pos token.Pos, format string, args ...any) {
	var found annotations.Diagnostics
	found.Add(pos, format, args...)
	r.Found = append(r.Found, found.Coded(code)...)
}
