package directive_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/ratelimit-go/ratelimit/generator/vet/directive"
)

func TestValid(t *testing.T) {
	if err := analysis.Validate([]*analysis.Analyzer{directive.Analyzer}); err != nil {
		t.Error(err)
	}
}

func TestDirectives(t *testing.T) {
	requireSpans(t, analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), directive.Analyzer, "directives"))
}

// TestMeaning expects the errors and warnings of the generator about directives that can be read.
func TestMeaning(t *testing.T) {
	requireSpans(t, analysistest.Run(t, analysistest.TestData(), directive.Analyzer, "meaning"))
}

// TestFault expects a diagnostic for a panic in the generator, here because of a package without types.
func TestFault(t *testing.T) {
	fset := token.NewFileSet()
	src := "package x\n\n//ratelimit:rule limit=1 per=1m\ntype X interface{ M() error }\n"
	file, err := parser.ParseFile(fset, "x.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	pass := &analysis.Pass{Fset: fset, Files: []*ast.File{file}, Pkg: types.NewPackage("x", "x"), ReadFile: os.ReadFile}
	pass.Report = func(d analysis.Diagnostic) { found = append(found, fset.Position(d.Pos).String()+": "+d.Message) }
	if _, err := directive.Analyzer.Run(pass); err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || !strings.HasPrefix(found[0], "x.go:1:1: internal error: ") {
		t.Errorf("found %q", found)
	}
}

// requireSpans checks the order of the findings and the words that they mark. At the end of a line they mark nothing.
func requireSpans(t *testing.T, results []*analysistest.Result) {
	t.Helper()
	for _, r := range results {
		fset, last := r.Pass.Fset, token.NoPos
		for _, d := range r.Diagnostics {
			from, to := fset.Position(d.Pos), fset.Position(d.End)
			if d.Pos < last {
				t.Errorf("%v: %s stands behind a finding at %v", from, d.Message, fset.Position(last))
			}
			if missing := from == to && atLineEnd(t, from); from.Line != to.Line || from.Column >= to.Column && !missing {
				t.Errorf("%v: %s ends at %v", from, d.Message, to)
			}
			last = d.Pos
		}
	}
}

func atLineEnd(t *testing.T, at token.Position) bool {
	src, err := os.ReadFile(at.Filename)
	if err != nil {
		t.Fatal(err)
	}
	return at.Offset == len(src) || src[at.Offset] == '\n'
}
