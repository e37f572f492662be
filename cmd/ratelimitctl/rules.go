package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// usedRules returns the rules that limiters used, followed by those in -rules that no limiter has used.
func (t *tool) usedRules(ctx context.Context) ([]ratelimit.UsedRule, error) {
	rules, err := t.limiter.Rules(ctx)
	if err != nil {
		return nil, err
	}
	for _, listed := range t.listed {
		if !slices.ContainsFunc(rules, func(r ratelimit.UsedRule) bool {
			return r.Name == listed.Name && r.Window() == listed.Window() && r.Key == listed.Key
		}) {
			rules = append(rules, listed)
		}
	}
	return rules, nil
}

// directive has values of a rule, in the words of directives.
type directive struct {
	Limit    *int64 `json:"limit,omitempty"` // nil if it is computed in each call
	Computed bool   `json:"computed,omitempty"`
	traffic.Arguments
	Burst int64  `json:"burst,omitempty"`
	Mode  string `json:"mode"`
}

func directiveOf(r ratelimit.Rule) directive {
	d := directive{Computed: r.Computed, Arguments: traffic.ArgumentsOf(r), Burst: r.Burst, Mode: r.Mode.String()}
	if !r.Computed {
		d.Limit = &r.Limit
	}
	return d
}

// shownRule is a rule as JSON.
type shownRule struct {
	Rule string `json:"rule"`
	Key  string `json:"key,omitempty"`
	directive
	Limits  map[int64]int `json:"processesByLimit,omitempty"` // if processes declare different limits
	InForce *directive    `json:"inForce,omitempty"`          // what an override of all keys makes of it
	Keys    int           `json:"overriddenKeys,omitempty"`
	Blocked int           `json:"blockedKeys,omitempty"`
	Paused  int           `json:"pausedKeys,omitempty"`
	Seen    time.Time     `json:"seen,omitzero"`

	declared, inForce string // in words
}

func (t *tool) printRules(ctx context.Context, _ []string) error {
	rules, err := t.usedRules(ctx)
	if err != nil {
		return err
	}
	if err := t.fleet.Follow(ctx); err != nil {
		return err
	}
	var rows []shownRule
	for _, r := range rules {
		row, err := t.showRule(&r)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	return printTable(t, rows, "no program has declared a rule within a day", "RULE, DECLARED, IN FORCE, KEY, MODE, SEEN", func(r *shownRule) []string {
		return []string{r.Rule, r.declared, r.inForce, r.Key, cmp.Or(r.InForce, &r.directive).Mode, cmp.Or(local(r.Seen), "not yet")}
	})
}

// showRule returns a rule as JSON, and in words.
func (t *tool) showRule(r *ratelimit.UsedRule) (row shownRule, err error) {
	row = shownRule{Rule: r.Name, Key: r.Key, directive: directiveOf(r.Rule), Seen: r.Seen, declared: declaredLimit(r)}
	if len(r.Limits) > 1 {
		row.Limits = r.Limits
	}
	now, err := t.limiter.RuleFor(ratelimit.Request{Rule: r.Rule})
	if err != nil {
		return row, err
	}
	var parts []string
	for s := range t.fleet.InForce().All() {
		switch {
		case s.Rule != fleet.SettingName(r.Name):
		case s.Kind == fleet.Block:
			row.Blocked++
		case s.Kind == fleet.Pause:
			row.Paused++
		case !s.AllKeys:
			row.Keys++
		default:
			changed := directiveOf(now)
			row.InForce = &changed
			parts = []string{inWords(now)}
			if s.Factor != 0 && now.Computed {
				parts[0] += fmt.Sprint(", factor ", s.Factor)
			}
		}
	}
	add := func(keys int, what string) {
		if keys > 0 {
			parts = append(parts, period.Count(int64(keys), "key")+what)
		}
	}
	add(row.Keys, " overridden")
	add(row.Blocked, " blocked")
	add(row.Paused, " paused")
	row.inForce = strings.Join(parts, "; ")
	return row, nil
}

// declaredLimit puts the limit that programs declare into words. During a rollout that may be several limits.
func declaredLimit(r *ratelimit.UsedRule) string {
	if len(r.Limits) < 2 || r.Computed {
		return inWords(r.Rule)
	}
	var texts []string
	for _, limit := range slices.Sorted(maps.Keys(r.Limits)) {
		by := fmt.Sprint(r.Limits[limit])
		if texts == nil {
			by = period.Count(int64(r.Limits[limit]), "process")
		}
		texts = append(texts, fmt.Sprintf("%d (%s)", limit, by))
	}
	return strings.Join(texts, ", ") + " " + traffic.PerWindow(r.Window())
}

// inWords puts a limit and its window into words.
func inWords(r ratelimit.Rule) string {
	limit := fmt.Sprint(r.Limit)
	if r.Computed {
		limit = "computed"
	}
	return limit + " " + traffic.PerWindow(r.Window())
}

// named returns the rules that same accepts. If there are none, the error names a rule that is spelled nearly so.
func (t *tool) named(ctx context.Context, name string, same func(rule string) bool) ([]ratelimit.UsedRule, error) {
	rules, err := t.usedRules(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	rules = slices.DeleteFunc(rules, func(r ratelimit.UsedRule) bool { return !same(r.Name) })
	if len(rules) > 0 {
		return rules, nil
	}
	near := cmp.Or(annotations.Suggest(name, names), "; ratelimitctl rules lists them")
	return nil, fmt.Errorf("no program of prefix %q has used a rule %q within a day%s; give others with -rules", t.prefix, name, near)
}

// rulesNamed returns the rules of a name.
func (t *tool) rulesNamed(ctx context.Context, name string) ([]ratelimit.UsedRule, error) {
	return t.named(ctx, name, func(rule string) bool { return rule == name })
}

// findAll returns the rules that settings of a name change. With -force there may be none.
func (t *tool) findAll(ctx context.Context, name string) ([]ratelimit.UsedRule, error) {
	rules, err := t.named(ctx, name, func(rule string) bool { return fleet.SettingName(rule) == name })
	switch {
	case err == nil:
		return rules, nil
	case t.force:
		return nil, nil
	}
	return nil, fmt.Errorf("%w, or use -force", err)
}

// anyOf returns one of the rules of a name. With -force there may be none, and then it makes one up: a setting needs only its name.
func anyOf(rules []ratelimit.UsedRule, name string) ratelimit.Rule {
	if len(rules) > 0 {
		return rules[0].Rule
	}
	return ratelimit.Rule{Name: name, Limit: 1, Per: time.Minute}
}

// requests returns requests for keys under rules. The only key of a rule without keys is "".
func requests(rules []ratelimit.UsedRule, keys []string) (all []ratelimit.Request, err error) {
	for _, key := range keys {
		for _, r := range rules {
			if r.Key != "" && key == "" {
				return nil, misused(fmt.Sprintf("rule %s counts by %s: name a key", r.Name, r.Key))
			}
			if r.Key == "" && key != "" {
				return nil, misused(fmt.Sprintf("rule %s has one count for everybody: leave out the key", r.Name))
			}
			all = append(all, ratelimit.Request{Rule: r.Rule, Key: key})
		}
	}
	return all, nil
}
