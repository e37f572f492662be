package check

import (
	"cmp"
	"go/token"
	"maps"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
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
	case loose.Rule.Text("name") != "": // others may be charged to it that are not charged to strict
		return false
	case s.Mode != ratelimit.ModeEnforce || l.Mode != ratelimit.ModeEnforce, s.Distinct != "":
		return false
	case s.Scope != l.Scope || s.OnError != l.OnError: // while the store is out of reach, one may bind where the other does not
		return false
	case s.Refund != ratelimit.RefundNever && l.Refund != s.Refund: // strict forgets what loose remembers
		return false
	case l.Block > 0 && isBucket(l):
		return false
	}
	var known [2]bool
	s.Limit, known[0] = a.limit(strict)
	l.Limit, known[1] = a.limit(loose)
	if !known[0] || !known[1] || !a.coversCalls(strict, loose) || !a.inCalls(strict, loose, &s, &l) {
		return false
	}
	if l.Block > 0 {
		l.Limit-- // it must not refuse what strict refuses either: there is room for one more, always
	}
	return s.Limit > 0 && l.Limit > 0 && follows(l, s)
}

// coversCalls reports that each call that is charged to loose is charged to strict as well, for one subject of strict's where
// that is one of loose's.
func (a *analysis) coversCalls(strict, loose *model.Rule) bool {
	if !a.coarser(strict, loose) {
		return false
	}
	if strict.Rule.When.IsZero() {
		return true
	}
	when, ok := meaning(strict.When)
	same, _ := meaning(loose.When)
	return ok && when == same
}

// coarser reports that calls of one subject of loose's are of one of strict's. No two lists of values give one key, so that it
// tells what each of its expressions gives; but for a rule of several methods, in which they may be about other parameters.
func (a *analysis) coarser(strict, loose *model.Rule) bool {
	subject, everybody, ok := a.subject(strict.Subject)
	other, _, otherOK := a.subject(loose.Subject)
	if !ok || !otherOK || everybody || subject == other || loose.OfType {
		return ok && otherOK && (everybody || subject == other)
	}
	known, _ := islands(loose.Subject)
	for _, p := range strict.Subject {
		if text, _ := meaning(p.Code); p.Expr != "" && !known[text] && a.constant(p.Code) == nil {
			return false
		}
	}
	return true
}

// inCalls makes the limits of two rules comparable: they count what costs as much, or else how many calls they admit, of which
// each costs the same. A member costs 1 at most.
func (a *analysis) inCalls(strict, loose *model.Rule, s, l *ratelimit.Rule) bool {
	cost, ok := a.cost(strict)
	other, otherOK := a.cost(loose)
	if !ok || !otherOK {
		text, ok := meaning(strict.Cost)
		same, sameOK := meaning(loose.Cost)
		return ok && sameOK && text == same && l.Block == 0
	}
	if cost < 1 || other < 1 || isBucket(*s) || isBucket(*l) {
		return cost == other && cost > 0 && (cost == 1 || l.Block == 0)
	}
	s.Limit /= cost
	l.Limit /= other
	return true
}
