package check

import (
	"cmp"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// sharedNames warns of rules of one name that look as if they shared a budget and do not, since their windows differ, and of
// those that share one and look as if they did not, since their limits or keys differ.
func (a *analysis) sharedNames(pkgs []*model.Package) {
	byName := named(pkgs)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		first := byName[name][0]
		for _, r := range byName[name][1:] {
			limit, known := limitOf(r)
			other, otherKnown := limitOf(first)
			switch at := a.line(first, r); {
			case a.twin[r.Pos]:
			case r.Limit.Window() != first.Limit.Window():
				a.warnf(argument(r, "name"), "rules called %s share a budget only if they have one window: this has %s, the one of %s has %s",
					name, r.Limit.Window(), at, first.Limit.Window())
			case known && otherKnown && limit != other:
				a.warnf(argument(r, "name"), "rules called %s share one budget, but have different limits: this has %d, the one of %s has %d", name, limit, at, other)
			case shape(r) != shape(first):
				a.warnf(argument(r, "name"), "rules called %s share one budget, but have different keys: this has %q, the one of %s has %q",
					name, r.Key.Value, at, first.Key.Value)
			}
		}
	}
}

// last is the last word of an expression, such as Phone in msg.Phone.
var last = regexp.MustCompile(`[\pL_][\pL_\p{Nd}]*\W*$`)

// shape writes a key such that those which probably mean the same look alike: {phone} is like {msg.Phone}.
func shape(r *model.Rule) string {
	var b strings.Builder
	for _, p := range r.Subject {
		b.WriteString(p.Literal)
		if p.Expr != "" {
			b.WriteString("{" + strings.ToLower(strings.TrimRight(last.FindString(p.Expr), ") ")) + "}")
		}
	}
	return b.String()
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
				state := key.State("", r.Limit.Name, "", key.Tag(r.Limit.Name, m.Scope, r.Limit.Window(), r.Limit.Key))
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
