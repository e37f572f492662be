package analyse

import (
	"cmp"
	"go/token"
	"maps"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/runtime"
)

// pair is two rules, by their positions, of which the first admits each call that the second admits.
type pair struct{ loose, strict token.Pos }

// neverBinds warns of rules of w that refuse no call which another one admits.
func (a *analysis) neverBinds(w *model.Wrapper) {
	rules := map[token.Pos]*model.Rule{}
	covers := map[token.Pos]int{} // in how many methods a rule applies
	implied := map[pair]int{}     // in how many of them strict is beside loose
	for _, m := range w.Methods {
		// A call that waits is charged at a later time, for which the rules are not compared.
		waits := slices.ContainsFunc(m.Rules, func(r *model.Rule) bool { return r.Limit.Wait > 0 })
		for _, loose := range m.Rules {
			rules[loose.Pos] = loose
			covers[loose.Pos]++
			for _, strict := range m.Rules {
				if !waits && strict.Pos != loose.Pos && a.implies(strict, loose) {
					implied[pair{loose.Pos, strict.Pos}]++
				}
			}
		}
	}
	// A rule that counts the calls of several methods never binds only if a stricter one stands beside it in each of them.
	always := func(p pair) bool { return implied[p] > 0 && implied[p] == covers[p.loose] }
	reported := map[token.Pos]bool{}
	for _, p := range sorted(implied) {
		// Of two rules that imply each other the first is kept.
		if !always(p) || reported[p.loose] || always(pair{p.strict, p.loose}) && p.loose < p.strict {
			continue
		}
		reported[p.loose] = true
		loose, strict := rules[p.loose], rules[p.strict]
		limit, _ := a.limit(strict)
		a.warnf(loose.Verb.Pos, "this rule never refuses a call that the one of %s admits, which is stricter: %d per %s; remove one of them",
			a.line(strict, loose), limit, strict.Limit.Window())
	}
}

func sorted(pairs map[pair]int) []pair {
	return slices.SortedFunc(maps.Keys(pairs), func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.loose, b.loose), cmp.Compare(a.strict, b.strict))
	})
}

// implies reports that loose certainly admits each call of a method that strict admits. Both are rules of that method.
func (a *analysis) implies(strict, loose *model.Rule) bool {
	s, l := strict.Limit, loose.Limit
	switch {
	case loose.Rule.Name != "": // others may be charged to it that are not charged to strict
		return false
	case s.Mode != runtime.ModeEnforce || l.Mode != runtime.ModeEnforce, s.Distinct != "" || l.Distinct != "":
		return false
	case s.Scope != l.Scope || s.OnError != l.OnError || l.Block > 0: // it has another effect than to refuse
		return false
	case s.Refund != runtime.RefundNever && l.Refund != s.Refund: // strict forgets what loose remembers
		return false
	}
	var known [2]bool
	s.Limit, known[0] = a.limit(strict)
	l.Limit, known[1] = a.limit(loose)
	return known[0] && known[1] && s.Limit > 0 && a.coversCalls(strict, loose) && follows(l, s)
}

// coversCalls reports that what is charged to loose is charged to strict as well, for a subject of loose.
func (a *analysis) coversCalls(strict, loose *model.Rule) bool {
	subject, everybody, ok := a.subject(strict.Subject)
	other, _, otherOK := a.subject(loose.Subject)
	if !ok || !otherOK || !everybody && subject != other {
		return false
	}
	if !strict.Rule.When.IsZero() {
		when, ok := meaning(strict.When)
		if same, _ := meaning(loose.When); !ok || when != same {
			return false
		}
	}
	cost, ok := a.cost(strict)
	same, sameOK := a.cost(loose)
	if ok && sameOK {
		return cost == same
	}
	text, ok := meaning(strict.Cost)
	sameText, sameOK := meaning(loose.Cost)
	return ok && sameOK && text == sameText
}
