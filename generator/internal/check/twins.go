package check

import (
	"fmt"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// twins reports two rules of a method with the same count. If they count the same calls, one of them never decides. Otherwise each
// of them also counts the calls of the other. The error stands at the second rule, or, if only one of them is a rule of the type, at
// the rule of the method.
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
			if counted(first) == counted(later) {
				a.found.Add(later.Verb.Pos, "this rule counts the same calls in the same window (%s) as the rule of %s; "+
					"keep the stricter one, or give one a name",
					later.Limit.Window(), a.line(first, later))
			} else {
				a.found.Add(later.Verb.Pos, "this rule shares one count with the rule of %s, since both are called %s, "+
					"so each also counts what the other takes; give one of them a name of its own",
					a.line(first, later), later.Limit.Name)
			}
		}
	}
}

// isTwin reports whether two rules of a method have the same name, key, scope and window.
func isTwin(a, b *model.Rule) bool {
	key, ok := subject(a.Subject)
	other, otherOK := subject(b.Subject)
	return ok && otherOK && key == other && a.Limit.Name == b.Limit.Name && a.Limit.Scope == b.Limit.Scope && a.Limit.Window() == b.Limit.Window()
}

// counted returns the condition, cost, member and mode of a rule as text.
func counted(r *model.Rule) string {
	member, _ := subject(r.Member)
	return fmt.Sprint(textOf(r.When), amountText(r.Rule.Cost, r.Cost), member, r.Limit.Mode)
}

func textOf(code *expr.Code) string {
	if code == nil {
		return ""
	}
	return code.Text
}

// amountText returns a cost as canonical text. An absent cost is 1.
func amountText(of annotations.Amount, code *expr.Code) string {
	if n, ok := amount(of, code, 1); ok {
		return fmt.Sprint(n)
	}
	return textOf(code)
}
