package check

import (
	"cmp"
	"go/token"
	"maps"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/calendar"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// splitNames warns of rules of one name that look as if they shared a budget and do not, since their windows differ. Rules that
// stand on the same method or type are meant to have several windows.
func (a *analysis) splitNames(pkgs []*model.Package) {
	byName := named(pkgs)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		rules := byName[name]
		var alone []*model.Rule
		for _, r := range rules {
			if other := elsewhere(r, rules); other != nil {
				alone = append(alone, r)
			}
		}
		if len(alone) > 1 && alone[0] == rules[0] {
			alone = alone[1:] // one of two is enough
		}
		for _, r := range alone {
			other, what := elsewhere(r, rules), "have one window"
			if calendar.Same(r.Limit, other.Limit) {
				what = "spell their window alike"
			}
			a.warnf(argument(r, "name"), "rules called %s share a budget only if they %s: this has %s, the one of %s has %s",
				name, what, r.Limit.Window(), a.line(other, r), other.Limit.Window())
		}
	}
}

// oneScope warns of rules that have no name of their own and share their counts all the same, as they are called alike: after the
// method C of a type a.B, and after the type C of a package a.B; or after packages of two modules that have one path in them.
func (a *analysis) oneScope(pkgs []*model.Package) {
	type owner struct {
		rule *model.Rule
		pkg  string
	}
	owners, seen := map[string]owner{}, map[token.Pos]bool{}
	for _, p := range pkgs {
		for m := range p.Methods() {
			for _, r := range m.Rules {
				if r.Rule.Text("name") != "" || seen[r.Pos] {
					continue
				}
				seen[r.Pos] = true
				state := r.Limit.StateKey(m.Scope, "")
				if other, ok := owners[state]; !ok {
					owners[state] = owner{r, p.Types.Path()}
				} else if other.pkg != p.Types.Path() {
					a.warnf(r.Verb.Pos, "this rule shares the counts of the one of %s in %s, since both are called %s; give one of them a name",
						a.line(other.rule, r), other.pkg, r.Limit.Name)
				}
			}
		}
	}
}

// named returns the rules that have a name of their own, by name and in the order of the source. A rule of a type stands there
// once.
func named(pkgs []*model.Package) map[string][]*model.Rule {
	byName, seen := map[string][]*model.Rule{}, map[token.Pos]bool{}
	for _, p := range pkgs {
		for m := range p.Methods() {
			for _, r := range m.Rules {
				if r.Rule.Text("name") != "" && !seen[r.Pos] {
					seen[r.Pos] = true
					byName[r.Limit.Name] = append(byName[r.Limit.Name], r)
				}
			}
		}
	}
	for _, rules := range byName {
		slices.SortFunc(rules, func(a, b *model.Rule) int { return cmp.Compare(a.Pos, b.Pos) })
	}
	return byName
}

// elsewhere returns a rule of the same name on another method or type, if none of those there has the window of r.
func elsewhere(r *model.Rule, rules []*model.Rule) *model.Rule {
	var found *model.Rule
	for _, other := range rules {
		switch {
		case other.Owner == r.Owner:
		case other.Limit.Window() == r.Limit.Window():
			return nil
		case found == nil:
			found = other
		}
	}
	return found
}
