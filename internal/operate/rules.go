package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Rule is a rule as programs declare it, and as it is in force for keys that have no settings of their own. For example, "login" declares 100
// per minute, an override of all keys has a factor of 2, and two keys are blocked. Then InForce has a Limit of 200, and Blocked is 2.
type Rule struct {
	ratelimit.UsedRule
	InForce    ratelimit.Rule
	Override   *fleet.Setting // of all keys, the most exact one; nil if there is none
	Overridden int            // keys that have an override of their own
	Blocked    int            // keys that settings block
	Paused     int            // keys that are paused
	MorePaused bool           // perhaps more are, as not all pauses are known
	ByPattern  int            // settings for keys by pattern, or for keys under a glob of rules
	Rates      traffic.Rates
}

// Rules returns the rules that programs use, or used within a day, followed by the listed ones that no program has used.
func (p *Prefix) Rules(ctx context.Context) ([]ratelimit.UsedRule, Seen) { return p.rules.Get(ctx) }

// readRules reads the processes first, so that the rules need not read them again.
func (p *Prefix) readRules(ctx context.Context, _ []ratelimit.UsedRule) ([]ratelimit.UsedRule, error) {
	if _, at := p.processes.await(ctx); at.Err != nil {
		return nil, at.Err
	}
	rules, err := p.shown.Rules(ctx)
	for _, listed := range p.listed {
		if !slices.ContainsFunc(rules, func(r ratelimit.UsedRule) bool { return ID(r.Rule) == ID(listed.Rule) }) {
			rules = append(rules, listed)
		}
	}
	return rules, err
}

// ID tells a rule from others of its name: "login 1m {user}".
func ID(r ratelimit.Rule) string { return r.Name + " " + r.Window() + " " + r.Key }

// RulesInForce returns the rules that are wanted, as they are in force.
func (p *Prefix) RulesInForce(ctx context.Context, wanted func(*ratelimit.UsedRule) bool) (all []Rule, at Seen) {
	followed := p.Follow(ctx)
	rules, at := p.rules.Get(ctx)
	paused, _ := p.pauses.Get(ctx)
	sums, _ := p.Traffic(ctx)
	for i := range rules {
		if wanted(&rules[i]) {
			all = append(all, p.ruleInForce(rules[i], paused, sums))
		}
	}
	return all, at.Worse(followed)
}

func (p *Prefix) ruleInForce(declared ratelimit.UsedRule, paused pauses, sums *traffic.Sums) Rule {
	r, of := Rule{UsedRule: declared}, p.inForce(declared.Name)
	r.InForce, _ = p.shown.RuleFor(ratelimit.Request{Rule: declared.Rule})
	if all := p.fleet.InForce().ForKey(fleet.SettingName(declared.Name), "", "", true).Overrides; len(all) > 0 { // of no key, so of all keys
		r.Override = all[0]
	}
	r.ByPattern = len(p.fleet.InForce().ByPattern(fleet.SettingName(declared.Name)).Keys())
	r.Rates = sums.Of(traffic.Named{Rule: declared.Name, Window: r.InForce.Window()})
	r.Paused, r.MorePaused = paused.count(declared.Name), paused.more > 0
	for s := range of.Settings() {
		switch {
		case s.Kind == fleet.Block:
			r.Blocked++
		case s.Kind == fleet.Pause:
			r.Paused++
		case !s.AllKeys:
			r.Overridden++
		}
	}
	return r
}

// Limits puts the limits that programs declare into words. During a rollout there may be several: "10 (1 process), 100 (2) per minute".
func Limits(r ratelimit.UsedRule) string {
	if len(r.Limits) < 2 || r.Computed {
		return Limit(r.Rule)
	}
	var texts []string
	for _, limit := range slices.Sorted(maps.Keys(r.Limits)) {
		by := Number(int64(r.Limits[limit]))
		if texts == nil {
			by = Count(r.Limits[limit], "process")
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", Number(limit), by))
	}
	return strings.Join(texts, ", ") + " " + traffic.PerWindow(r.Window())
}

// Limit puts a limit and its window into words: "100 per minute".
func Limit(r ratelimit.Rule) string {
	limit := Number(r.Limit)
	if r.Computed {
		limit = "computed"
	}
	return limit + " " + traffic.PerWindow(r.Window())
}

// InWords says what settings make of the rule: "200 per minute; 2 keys blocked". It is "" if there are none.
func (r Rule) InWords() string {
	var parts []string
	if r.Override != nil {
		parts = append(parts, Limit(r.InForce))
		if r.InForce.Computed && r.Override.Factor != 0 {
			parts[0] += fmt.Sprint(", factor ", r.Override.Factor)
		}
	}
	for _, keys := range []struct {
		n    int
		what string
	}{{r.Overridden, " overridden"}, {r.Blocked, " blocked"}, {r.Paused, " paused"}} {
		if keys.n > 0 {
			parts = append(parts, Count(keys.n, "key")+keys.what)
		}
	}
	if r.Paused > 0 && r.MorePaused {
		parts[len(parts)-1] += " or more"
	}
	if r.ByPattern > 0 {
		parts = append(parts, Count(r.ByPattern, "setting")+" by pattern")
	}
	return strings.Join(parts, "; ")
}

// UnknownRule is the error of a name that no rule has.
type UnknownRule struct {
	Name, Prefix string
	Names        []string // that rules have
}

func (e *UnknownRule) Error() string {
	near := cmp.Or(annotations.Suggest(e.Name, e.Names), "; ratelimitctl rules lists them")
	return fmt.Sprintf("no program of prefix %q has used a rule %q within a day%s", e.Prefix, e.Name, near)
}

// Named returns the rules of a name. The name of an unnamed rule's method stands for all unnamed rules of the method. If there are none, the error is
// an *UnknownRule.
func (p *Prefix) Named(ctx context.Context, name string) ([]ratelimit.UsedRule, error) {
	rules, at := p.rules.Get(ctx)
	if at.Err != nil {
		return nil, at.Err
	}
	var found []ratelimit.UsedRule
	unknown := &UnknownRule{Name: name, Prefix: p.name}
	for _, r := range rules {
		if unknown.Names = append(unknown.Names, r.Name); isNamed(r.Name, name) {
			found = append(found, r)
		}
	}
	if found == nil {
		return nil, unknown
	}
	return found, nil
}

// isNamed reports whether a name, or a glob of names, stands for a rule.
func isNamed(rule, name string) bool {
	return rule == name || fleet.Covers(name, fleet.SettingName(rule))
}

// byName returns a function that returns the rules of a name as settings use it, or of a glob.
func byName(rules []ratelimit.UsedRule) func(name string) []ratelimit.UsedRule {
	named := map[string][]ratelimit.UsedRule{}
	for _, r := range rules {
		name := fleet.SettingName(r.Name)
		named[name] = append(named[name], r)
	}
	return func(name string) []ratelimit.UsedRule {
		if _, known := named[name]; !known && fleet.IsGlob(name) {
			named[name] = slices.DeleteFunc(slices.Clone(rules), func(r ratelimit.UsedRule) bool { return !isNamed(r.Name, name) })
		}
		return named[name]
	}
}

// allowUnused lets somebody end the settings of a name that no rule has.
func (p *Prefix) allowUnused(ctx context.Context, t *Target) {
	if at := p.Follow(ctx); at.Err != nil {
		return
	}
	name := fleet.SettingName(t.Rule)
	_, err := p.Named(ctx, name)
	if _, unknown := errors.AsType[*UnknownRule](err); unknown {
		for s := range p.fleet.InForce().All() {
			t.Force = t.Force || s.Rule == name
		}
	}
}

// ofSettings returns the rules that settings of a name change. With force there may be none: a setting needs only a name.
func (p *Prefix) ofSettings(ctx context.Context, name string, force bool) ([]ratelimit.UsedRule, error) {
	rules, err := p.Named(ctx, fleet.SettingName(name))
	switch {
	case err == nil:
		return rules, nil
	case force:
		return []ratelimit.UsedRule{{Rule: ratelimit.Rule{Name: fleet.SettingName(name), Limit: 1, Per: time.Minute}}}, nil
	}
	return nil, err
}
