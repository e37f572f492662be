// Package check finds rules that are valid each by itself and yet cannot do what they seem to. It looks at the model after its
// expressions were compiled. What a directive may say, and where it may stand, is not decided here.
//
// What is said of two rules holds for the directives as written: a program may override them while it runs.
package check

import (
	"go/token"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// Package checks the rules of a package, and returns what [Shared] needs to know of them. A rule that has no effect, or refuses
// every call without saying so, is an error. A rule that probably does not do what its author meant gets a warning.
func Package(fset *token.FileSet, pkg *model.Package) (annotations.Diagnostics, []Count) {
	a := &analysis{fset: fset, literal: map[token.Pos]bool{}, twin: map[token.Pos]bool{}}
	for _, f := range pkg.Files {
		for _, w := range f.Wrappers {
			a.wrapper(w)
		}
	}
	return a.found.Coded("rule"), a.counts(pkg)
}

type analysis struct {
	fset    *token.FileSet
	literal map[token.Pos]bool // rules whose keys name what they should hold
	twin    map[token.Pos]bool // rules that count what another one counts
	found   annotations.Diagnostics
}

func (a *analysis) wrapper(w *model.Wrapper) {
	a.literalKeys(w)
	for _, m := range w.Methods {
		for _, r := range m.Rules {
			a.neverApplies(r)
			a.neverValid(r)
			a.neverPasses(r)
			a.emptyKey(r)
			a.dearLeaks(r)
			a.oneMember(r, m)
			a.neverFails(r)
			a.boundaryBurst(r)
			a.longLease(r)
		}
		a.twins(m.Rules)
		a.neverWaits(m)
		a.sharedByAll(m)
	}
}

// line names the line of a rule as seen from another one.
func (a *analysis) line(of, from *model.Rule) string {
	return annotations.Line(a.fset, of.Pos, from.Pos)
}

// argument is where the value of an argument stands, or else the verb.
func argument(r *model.Rule, name string) token.Pos {
	if arg, ok := r.Arg(name); ok && !arg.Value.IsZero() {
		return arg.Value.Pos
	}
	return r.Verb.Pos
}
