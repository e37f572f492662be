package simulate

import (
	"fmt"
	"slices"
)

// pair is a rule of a method on both sides of a comparison.
type pair struct {
	was, now *Rule // nil if the rule is not there
}

// either returns the rule of now, or the one before if the rule is gone.
func (p pair) either() *Rule {
	if p.now != nil {
		return p.now
	}
	return p.was
}

// pairUp pairs each rule of now with a rule that its method had before. It prefers an equal rule, then one of the same name, key and window, then one
// of the same name, and then one with the same arguments. Rules that are gone come last.
func pairUp(before, now []Rule) []pair {
	pairs := make([]pair, len(now))
	for i := range now {
		pairs[i].now = &now[i]
	}
	left := make([]*Rule, len(before))
	for i := range before {
		left[i] = &before[i]
	}
	for _, alike := range []func(a, b *Rule) bool{
		func(a, b *Rule) bool { return a.Name == b.Name && a.Text == b.Text },
		func(a, b *Rule) bool { return a.Name == b.Name && a.Key == b.Key && a.Window() == b.Window() },
		func(a, b *Rule) bool { return a.Name == b.Name },
		func(a, b *Rule) bool { return a.Text == b.Text },
	} {
		for i, p := range pairs {
			j := slices.IndexFunc(left, func(was *Rule) bool { return p.was == nil && was.Method == p.now.Method && alike(was, p.now) })
			if j >= 0 {
				pairs[i].was = left[j]
				left = slices.Delete(left, j, j+1)
			}
		}
	}
	for _, was := range left {
		pairs = append(pairs, pair{was: was})
	}
	return pairs
}

// The values that a rule may take from the columns of a csv, and the columns that hold them for all rules.
const (
	keyValue = iota
	memberValue
	costValue
	limitValue
	whenValue
	anchorValue
	values
)

var valueColumns = [values]string{"key", "member", "cost", "limit", "when", "anchor"}

// valueArguments are the arguments of a directive that have these values.
var valueArguments = [values]string{"key", "distinct", "cost", "limit", "when", "anchor"}

// expressions returns the texts of the values that a call brings for the rule, "" for those that it does not need. They may be the names of columns.
func (r *Rule) expressions() [values]string {
	if r == nil {
		return [values]string{}
	}
	return [values]string{r.Key, r.Distinct, r.CostExpr, r.LimitExpr, r.WhenExpr, r.AnchorExpr}
}

// valuesIn returns the columns that have the values of a rule.
func (t *table) valuesIn(r *Rule) (in [values]int) {
	for i, text := range r.expressions() {
		in[i] = t.column(text, valueColumns[i])
	}
	return in
}

// lacking says why the calls of a csv cannot be decided under both rules of a pair, or returns "". The pairs are those of the method. A column holds
// one value of a call, so it serves one key or expression of a method.
func (t *table) lacking(p pair, method []pair) string {
	for i, name := range valueColumns {
		for _, text := range p.texts(i) {
			column := t.column(text, name)
			if column < 0 {
				return fmt.Sprintf("%s=%q needs a column %s or %[2]q", valueArguments[i], text, name)
			}
			for _, q := range method {
				for _, other := range q.texts(i) {
					if other != text && t.column(other, name) == column {
						return fmt.Sprintf("%s=%q and %[1]s=%[3]q need a column each, of these names", valueArguments[i], text, other)
					}
				}
			}
		}
	}
	return ""
}

// texts returns the texts of a value of both rules, those that there are.
func (p pair) texts(value int) (texts []string) {
	for _, r := range []*Rule{p.now, p.was} {
		if text := r.expressions()[value]; text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}
