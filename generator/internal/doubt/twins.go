package doubt

import (
	"fmt"

	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
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
					"keep the stricter one",
					later.Declared.Window(), a.line(first, later))
			} else {
				a.found.Add(later.Verb.Pos, "this rule shares one count with the rule of %s, since both are called %s, "+
					"so each also counts what the other takes; give one of them a name of its own",
					a.line(first, later), later.Declared.Name)
			}
		}
	}
}

// neverRefuses warns of a rule beside a stricter one that counts the same calls in the same window under another name. It says nothing of a
// name that other rules have, which may count more.
func (a *analysis) neverRefuses(rules []*model.Rule) {
	for i, r := range rules {
		for j, other := range rules {
			limit, known := limitOf(r)
			stricter, both := limitOf(other)
			isLooser := known && both && (limit > stricter || limit == stricter && i > j)
			isShared := (r.OfType || r.Rule.Text("name") != "") && a.users[r.Declared.Name] > 1
			if !isLooser || isShared || !countsLike(r, other) {
				continue
			}
			a.found.Warn(r.Verb.Pos, "this rule never refuses a call: the rule of %s counts the same calls in the same window (%s) and admits at most %d; "+
				"leave one of them out", a.line(other, r), r.Declared.Window(), stricter)
			break
		}
	}
}

// countsLike reports whether two rules that refuse calls have the same permits in their counts, each in its own count.
func countsLike(a, b *model.Rule) bool {
	return countsBeside(a, b) && a.Declared.Name != b.Declared.Name && a.Declared.Mode == ratelimit.ModeEnforce && counted(a) == counted(b) &&
		a.Declared.Refund == b.Declared.Refund && textOf(a.Settle) == textOf(b.Settle) && textOf(a.Pause) == textOf(b.Pause)
}

// isTwin reports whether two rules of a method have the same name, key, scope and window.
func isTwin(a, b *model.Rule) bool {
	return countsBeside(a, b) && a.Declared.Name == b.Declared.Name
}

// countsBeside reports whether two rules of a method have the same key, scope and window.
func countsBeside(a, b *model.Rule) bool {
	return subject(a.Subject) == subject(b.Subject) && a.Declared.Scope == b.Declared.Scope && a.Declared.Window() == b.Declared.Window()
}

// counted returns the condition, cost, member, anchor and mode of a rule as text.
func counted(r *model.Rule) string {
	return fmt.Sprint(textOf(r.When), costText(r), subject(r.Member), textOf(r.Anchor), r.Declared.Mode)
}

func textOf(code *expr.Code) string {
	if code == nil {
		return ""
	}
	return code.Text
}

// costText returns the cost of a rule as canonical text.
func costText(r *model.Rule) string {
	if n, ok := costOf(r); ok {
		return fmt.Sprint(n)
	}
	return textOf(r.Cost)
}
