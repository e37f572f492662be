package check

import (
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// keyIsMember reports a rule that counts different members of which each key has only one, as the key names it. Rules of one
// name may each have their own.
func (a *analysis) keyIsMember(r *model.Rule) {
	limit, known := limitOf(r)
	if r.Rule.Text("name") != "" || !known || limit < 1 || r.Limit.Mode == ratelimit.ModeTrigger {
		return // a trigger may ask for the first one
	}
	member, ok := islands(r.Member)
	key, _ := islands(r.Subject)
	for text := range member {
		ok = ok && key[text]
	}
	if ok && len(member) > 0 {
		a.errorf(argument(r, "distinct"), "distinct: the key contains the same values, so each key has only one member and the rule refuses no call")
	}
}

// islands returns the expressions of a template; ok is false if one of them did not compile.
func islands(pieces []model.Piece) (texts map[string]bool, ok bool) {
	texts, ok = map[string]bool{}, true
	for _, p := range pieces {
		if p.Expr == "" {
			continue
		}
		if p.Code == nil {
			return nil, false
		}
		texts[p.Code.Text] = true
	}
	return texts, ok
}

// neverWaits reports rules that wait in vain: the calls of m count members, and do not wait. Where that depends on the call, it
// is a warning.
func (a *analysis) neverWaits(m *model.Method) {
	for _, r := range m.Rules {
		for _, counts := range m.Rules {
			if r.Limit.Wait == 0 || counts.Limit.Distinct == "" {
				continue
			}
			report := a.errorf
			if !counts.Rule.When.IsZero() {
				report = a.warnf
			}
			report(argument(r, "wait"), "wait: the rule of %s has distinct=, so calls of %s do not wait", a.line(counts, r), m.Name)
		}
	}
}

// neverFails warns of a policy for failures of the store, where a rule does without that.
func (a *analysis) neverFails(r *model.Rule) {
	if r.Limit.Scope == ratelimit.ScopeInstance && r.Rule.Text("on-error") != "" {
		a.warnf(argument(r, "on-error"), "on-error: this has no effect with scope=instance, which counts without the store that may fail")
	}
}
