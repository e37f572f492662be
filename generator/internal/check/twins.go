package check

import "github.com/ratelimit-go/ratelimit/generator/internal/model"

// twins reports two rules of a method that count for one subject in one window: each takes from the other. The error stands at the
// later one, or at that of the method if the other one is the type's.
func (a *analysis) twins(rules []*model.Rule) {
	for i, later := range rules {
		for _, first := range rules[:i] {
			if later.OfType && !first.OfType {
				first, later = later, first
			}
			if a.twin[first.Pos] || a.twin[later.Pos] || !isTwin(first, later) {
				continue
			}
			a.twin[later.Pos] = true
			a.found.Add(later.Verb.Pos, "this rule shares one count with the rule of %s, since they have the same name, key and window; "+
				"keep the stricter one, or give one a name of its own", a.line(first, later))
		}
	}
}

// isTwin reports whether two rules of a method have one name, one key and one window.
func isTwin(a, b *model.Rule) bool {
	key, ok := subject(a.Subject)
	other, otherOK := subject(b.Subject)
	return ok && otherOK && key == other && a.Limit.Name == b.Limit.Name && a.Limit.Scope == b.Limit.Scope && a.Limit.Window() == b.Limit.Window()
}
