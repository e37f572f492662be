// Package doubt finds valid rules that probably do not do what was meant. It looks at the model with compiled expressions. The
// syntax of directives and the places where they may stand are checked elsewhere.
//
// It compares rules as the directives state them, and does not know about overrides, which a program may set while it runs.
package doubt

import (
	"go/token"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// Package checks the rules of a package, and returns what [Shared] needs to know of them. A rule that has no effect, or refuses
// every call without saying so, is an error. A rule that probably does not do what its author meant gets a warning.
func Package(fset *token.FileSet, pkg *model.Package) (annotations.Diagnostics, []Count) {
	a := &analysis{fset: fset, literal: map[token.Pos]bool{}, twin: map[token.Pos]bool{}, users: map[string]int{}}
	for _, m := range pkg.Methods() {
		for _, r := range m.Rules {
			a.users[r.Declared.Name]++
		}
	}
	for _, f := range pkg.Files {
		for _, w := range f.Wrappers {
			a.wrapper(w)
		}
	}
	return a.found.Coded("rule"), a.counts(pkg)
}

type analysis struct {
	fset    *token.FileSet
	literal map[token.Pos]bool // rules with a literal key that was probably meant as an expression
	twin    map[token.Pos]bool // rules that share the count of another rule of their method
	users   map[string]int     // how many rules of methods have a name
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
			a.sharedAnchor(r)
			a.longLease(r)
			a.shortMonths(r)
			a.unevenSteps(r)
			a.shortWait(r)
			a.freeText(r, m)
		}
		a.twins(m.Rules)
		a.neverRefuses(m.Rules)
		a.neverWaits(m)
		a.sharedByAll(m)
	}
}

// line returns the line of the rule of, as [annotations.Line] does.
func (a *analysis) line(of, from *model.Rule) string {
	return annotations.Line(a.fset, of.Pos, from.Pos)
}
