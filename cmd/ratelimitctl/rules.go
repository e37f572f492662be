package main

import (
	"cmp"
	"context"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/rulelist"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// shownRule is a rule as JSON, as programs declare it.
type shownRule struct {
	rulelist.Row
	Limits  map[int64]int `json:"processesByLimit,omitempty"` // if processes declare different limits
	InForce *rulelist.Row `json:"inForce,omitempty"`          // what an override of all keys makes of it
	Keys    int           `json:"overriddenKeys,omitempty"`
	Blocked int           `json:"blockedKeys,omitempty"`
	Paused  int           `json:"pausedKeys,omitempty"`
	Seen    time.Time     `json:"seen,omitzero"`

	rule operate.Rule
}

func printRules(ctx context.Context, s *session) error {
	rules, at := s.prefix.RulesInForce(ctx, func(*ratelimit.UsedRule) bool { return true })
	if at.Err != nil {
		return at.Err
	}
	var rows []shownRule
	for _, r := range rules {
		row := shownRule{Row: rulelist.Of(r.Rule), Keys: r.Overridden, Blocked: r.Blocked, Paused: r.Paused, Seen: r.Seen, rule: r}
		if len(r.Limits) > 1 {
			row.Limits = r.Limits
		}
		if r.Override != nil {
			now := rulelist.Of(r.InForce)
			row.InForce = &now
		}
		rows = append(rows, row)
	}
	return printTable(s.output, rows, "no program has declared a rule within a day", "RULE, DECLARED, IN FORCE, KEY, MODE, SEEN", func(r *shownRule) []string {
		return []string{r.rule.Name, operate.Limits(r.rule.UsedRule), r.rule.InWords(), r.rule.Key, r.rule.InForce.Mode.String(), cmp.Or(operate.LocalTime(r.Seen), "not yet")}
	})
}
