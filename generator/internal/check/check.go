// Package check finds rules that are valid each by itself and yet cannot do what they seem to. It looks at the model after
// its expressions were compiled. What a directive may say, and where it may stand, is not decided here.
//
// What is said of two rules holds for the directives as written: a program may override them while it runs. Expressions that
// are equal are taken to have one value in one call.
package check

import (
	"go/token"
	"go/types"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// Packages analyses all rules of a load. Errors are rules that have no effect or refuse every call without saying so; warnings
// are rules that have another effect than they seem to.
func Packages(fset *token.FileSet, pkgs []*model.Package) (errs, warnings annotations.Errors) {
	a := &analysis{fset: fset, literal: map[token.Pos]bool{}}
	for _, p := range pkgs {
		a.pkg = p.Types
		for _, f := range p.Files {
			for _, w := range f.Wrappers {
				a.wrapper(w)
			}
		}
	}
	a.splitNames(pkgs)
	a.oneScope(pkgs)
	return a.errs, a.warnings
}

type analysis struct {
	fset           *token.FileSet
	pkg            *types.Package     // the one that is being looked at
	literal        map[token.Pos]bool // rules whose keys name what they should hold
	errs, warnings annotations.Errors
}

func (a *analysis) wrapper(w *model.Wrapper) {
	a.literalKeys(w)
	for _, m := range w.Methods {
		for _, r := range m.Rules {
			a.neverApplies(r)
			a.neverValid(r)
			a.neverPasses(r)
			a.dearLeaks(r)
			a.oneMember(r, m)
			a.keyIsMember(r)
			a.neverFails(r)
			a.boundaryBurst(r)
		}
		a.neverWaits(m)
		a.sharedByAll(m)
	}
	a.neverBinds(w)
}

func (a *analysis) errorf(pos token.Pos, format string, args ...any) {
	a.errs.Add(pos, format, args...)
}

func (a *analysis) warnf(pos token.Pos, format string, args ...any) {
	a.warnings.Add(pos, format, args...)
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
