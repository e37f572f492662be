package doubt

import (
	"cmp"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// oneMember reports a rule with distinct= that only ever has one member, or one for each key because the key contains the member. It
// ignores rules with names, as another rule of the same name may have other members.
func (a *analysis) oneMember(r *model.Rule, m *model.Method) {
	member := islands(r.Member)
	if len(r.Member) == 0 || r.Rule.Text("name") != "" {
		return
	}
	if len(member) == 0 {
		instead := cmp.Or(meantBy(r.Member, m), "write an expression in braces")
		a.found.Add(r.At("distinct"), "distinct: the text %q is the same member for every call, so the rule refuses no call; %s",
			r.Rule.Distinct.Value, instead)
		return
	}
	limit, known := limitOf(r)
	if !known || limit < 1 || r.Declared.Mode == ratelimit.ModeTrigger {
		return // a trigger may be about the first member
	}
	key := islands(r.Subject)
	if !slices.ContainsFunc(member, func(text string) bool { return !slices.Contains(key, text) }) {
		a.found.Add(r.At("distinct"), "distinct: the key contains the same values, so each key has only one member and the rule refuses no call")
	}
}

// islands returns the expressions of a template in canonical form.
func islands(pieces []model.Piece) (texts []string) {
	for _, p := range pieces {
		if p.Expr != "" {
			texts = append(texts, p.Code.Text)
		}
	}
	return texts
}

// neverWaits reports rules with wait= on a method that has a rule with distinct=, as calls that count members do not wait. If the
// rule with distinct= has a condition, it is a warning only.
func (a *analysis) neverWaits(m *model.Method) {
	for _, r := range m.Rules {
		for _, counts := range m.Rules {
			if r.Declared.Wait == 0 || counts.Declared.Distinct == "" {
				continue
			}
			report := a.found.Add
			if !counts.Rule.When.IsZero() {
				report = a.found.Warn
			}
			report(r.At("wait"), "wait: the rule of %s has distinct=, so calls of %s do not wait", a.line(counts, r), m.Name)
		}
	}
}

// neverFails warns of on-error= on a rule that does not use the store.
func (a *analysis) neverFails(r *model.Rule) {
	if r.Declared.Scope == ratelimit.ScopeInstance && r.Rule.Text("on-error") != "" {
		a.found.Warn(r.At("on-error"), "on-error: this has no effect with scope=instance, which counts without the store that may fail")
	}
}
