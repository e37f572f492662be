package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// reset forgets what keys have used under the rules of a name.
func (t *tool) reset(ctx context.Context, args []string) error {
	n := 0
	err := t.changeCounts(ctx, "reset", args, func(q ratelimit.Request) error {
		forgotten, err := t.limiter.Reset(ctx, q)
		n += forgotten
		return err
	})
	if err != nil {
		return err
	}
	return t.print(map[string]int{"forgotten": n}, []string{period.Count(int64(n), "count") + " forgotten"})
}

// given is what a key has left before and after permits were given to it. If its limit is computed in each call, both are minus what is used.
type given struct {
	Rule   string `json:"rule"`
	Key    string `json:"key,omitempty"`
	Before int64  `json:"before"`
	After  int64  `json:"after"`

	computed bool
}

// inWords says what was given, as in "search ann: 3 → 10 permits left".
func (g given) inWords() string {
	before, after, what := g.Before, g.After, "left"
	if g.computed {
		before, after, what = -before, -after, "used"
	}
	return fmt.Sprintf("%s: %d → %s %s", strings.TrimSpace(g.Rule+" "+g.Key), before, period.Count(after, "permit"), what)
}

// give returns permits to keys under the rules of a name, or takes some.
func (t *tool) give(ctx context.Context, args []string) error {
	if t.n == 0 {
		return misused("give: -n: expected how many permits, as in -n 50, or -n -50 to take them")
	}
	all := []given{}
	err := t.changeCounts(ctx, "give", args, func(q ratelimit.Request) error {
		before, err := t.left(ctx, q)
		if err != nil {
			return err
		}
		if err := t.limiter.Give(ctx, t.n, q); err != nil {
			return err
		}
		after, err := t.left(ctx, q)
		all = append(all, given{q.Rule.Name, before.Key, before.Remaining, after.Remaining, before.Limit == 0 && q.Rule.Computed})
		return err
	})
	if err != nil {
		return err
	}
	var lines [][]string
	for _, g := range all {
		lines = append(lines, []string{g.inWords()})
	}
	return t.print(all, firstKeys(lines)...)
}

// changeCounts changes the counts of RULE and KEY, or of -keys, and notes one change for all of them. The context of do has no actor.
func (t *tool) changeCounts(ctx context.Context, what string, args []string, do func(q ratelimit.Request) error) error {
	actor, err := t.actor()
	if err != nil {
		return err
	}
	rules, err := t.rulesNamed(ctx, args[0])
	if err != nil {
		return err
	}
	keys, err := t.keysOf(argument(args, 1))
	if err != nil {
		return err
	}
	all, err := requests(rules, keys)
	if err != nil {
		return err
	}
	if err := t.fleet.Follow(ctx); err != nil { // an override may change the window
		return err
	}
	for _, q := range all {
		if err := do(q); err != nil {
			return err
		}
	}
	change := fleet.Change{By: actor.By, Reason: actor.Reason, What: what, Rule: args[0], Keys: len(all), Permits: t.n}
	if len(all) == 1 {
		change.Keys = 0
		if change.Key, err = t.subject(all[0]); err != nil {
			return err
		}
	}
	if err := t.fleet.Note(ctx, change); err != nil {
		return fmt.Errorf("it is done, but not noted in changes: %w", err)
	}
	return nil
}

// argument returns an argument, or "" if it is missing.
func argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}
