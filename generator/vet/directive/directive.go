// Package directive finds //ratelimit: directives with mistakes.
//
// The [Analyzer] reports what the generator would report: comments that only look like directives, directives that cannot be read
// or that have no effect where they stand, rules and expressions that do not fit the method, and valid rules that probably do not
// do what was meant. Each finding stands at the wrong word, and has a suggested fix if there is only one way to correct it. The
// Analyzer also reports generated files that are missing or out of date.
//
// Package bypass finds programs that use a limited type without its wrapper.
package directive

import (
	"bytes"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/collect"
	"github.com/ratelimit-go/ratelimit/generator/internal/doubt"
	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/pipeline"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// Analyzer reports directives that are broken or suspicious, and generated files that are not up to date.
var Analyzer = &analysis.Analyzer{
	Name: "ratelimitdirective",
	Doc:  "report broken //ratelimit: directives and generated files that are not up to date",
	URL:  "https://pkg.go.dev/github.com/ratelimit-go/ratelimit/generator/vet/directive",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	p := source.Checked(pass.Fset, pass.Pkg, pass.TypesInfo, pass.Files)
	if pass.Module != nil {
		p.Module = pass.Module.Path
	}
	for _, path := range pass.IgnoredFiles {
		if src, err := pass.ReadFile(path); err == nil && strings.HasSuffix(path, ".go") && !source.IsOutput(path, src) {
			p.AddOther(pass.Fset, path, src)
		}
	}
	report(pass, diagnose(pass, p))
	return nil, nil
}

// diagnose returns the mistakes in the directives of p, and its stale generated files.
func diagnose(pass *analysis.Pass, p *source.Package) annotations.Diagnostics {
	r := pipeline.Read(pass.Fset, p)
	r.Found = slices.Concat(r.Found, doubt.Shared(pass.Fset, r.Counts), unheld(pass, r.Model))
	if !r.Found.HasErrors() && pass.Module != nil && !slices.ContainsFunc(p.Files, isCgo) { // otherwise nothing can be generated here
		found := stale(pass, p, r)
		r.Found = append(r.Found, found...) // after what Emit has added
	}
	return r.Found
}

// isCgo reports whether cgo generated the file from another one, whose types may differ.
func isCgo(f *source.File) bool { return strings.HasSuffix(f.Path, ".cgo1.go") }

// stale returns a diagnostic for each generated file that is missing or out of date.
func stale(pass *analysis.Pass, p *source.Package, r *pipeline.Result) (found annotations.Diagnostics) {
	expected := map[string]bool{}
	for _, o := range r.Emit() {
		expected[o.Output] = true
		first, name := o.Wrappers[0].Pos, filepath.Base(o.Output)
		got, err := pass.ReadFile(o.Output)
		got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))
		switch {
		case err != nil:
			found.Add(first, "%s is missing; %s", name, remedy)
		case !bytes.Equal(got, slices.Concat(source.Licence(got), o.Text)):
			found.Add(first, "%s is not up to date; %s", name, remedy)
		}
	}
	for _, f := range pass.Files {
		if name := pass.Fset.File(f.FileStart).Name(); source.IsGenerated(f) && !expected[name] && !isForOthers(p, name) {
			found.Add(f.Package, "this file was generated from directives that are gone; %s", remedy)
		}
	}
	return found.Coded("stale")
}

// isForOthers reports whether a generated file is of a type with directives in files that this build leaves out.
func isForOthers(p *source.Package, output string) bool {
	var others []*ast.File
	for _, f := range p.Others {
		others = append(others, f.Syntax)
	}
	annotated := source.Annotated(others, annotations.Head)
	from, _ := source.SourceOf(output)
	for _, f := range p.Files {
		for _, spec := range source.Types(f.Syntax) {
			if f.Path == from && annotated[spec.Name.Name] {
				return true
			}
		}
	}
	return false
}

const remedy = "run go tool ratelimit in this directory"

// report reports the findings in source order, without duplicates. A note is no finding, as nothing is wrong.
func report(pass *analysis.Pass, found annotations.Diagnostics) {
	for _, f := range found.Sorted(pass.Fset) {
		if f.Severity == annotations.SeverityNote {
			continue
		}
		d := analysis.Diagnostic{Pos: f.Pos, End: f.End, Category: f.Code, Message: f.Msg}
		if !d.End.IsValid() {
			d.End = wordEnd(pass, f.Pos)
		}
		if f.Fix != nil {
			d.SuggestedFixes = []analysis.SuggestedFix{{
				Message:   "write " + f.Fix.Text,
				TextEdits: []analysis.TextEdit{{Pos: f.Fix.Pos, End: f.Fix.End, NewText: []byte(f.Fix.Text)}},
			}}
		}
		pass.Report(d)
	}
}

// wordEnd returns the end of the word that begins at pos: the next space or the end of the line. If there is no word, it returns pos.
func wordEnd(pass *analysis.Pass, pos token.Pos) token.Pos {
	file := pass.Fset.File(pos)
	src, err := pass.ReadFile(file.Name())
	if err != nil || file.Offset(pos) >= len(src) {
		return pos
	}
	rest := src[file.Offset(pos):]
	if n := bytes.IndexAny(rest, " \t\r\n"); n >= 0 {
		rest = rest[:n]
	}
	return pos + token.Pos(len(rest))
}

// unheld returns a diagnostic for each rule that counts calls that run, above a method whose result goes on after the method has returned,
// such as a stream, unless a result holds the permit, or the line of the method is excused.
func unheld(pass *analysis.Pass, pkg *model.Package) (found annotations.Diagnostics) {
	excused := source.Excused(pass.Fset, pass.Files)
	for _, m := range pkg.Methods() {
		i := slices.IndexFunc(m.Results, func(result expr.Param) bool { return collect.Holds(result) != nil })
		if i < 0 || excused(m.Pos) {
			continue
		}
		for _, r := range m.Rules {
			if r.Declared.Releases() && r.Hold.IsZero() && !r.OfType {
				found.Add(r.Verb.Pos, "the permit comes back when %s returns, while %s goes on; write hold=%[2]s, "+
					"or end the line of %[1]s with //ratelimit:bare and a reason", m.Name, m.Results[i].Name)
			}
		}
	}
	return found.Coded("rule")
}
