package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// rules returns the rules that limiters used, followed by those in -rules that no limiter has used.
func (t *tool) rules(ctx context.Context) ([]ratelimit.UsedRule, error) {
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

// shownRule is a rule as JSON.
type shownRule struct {
	Rule   string    `json:"rule"`
	Limit  *int64    `json:"limit,omitempty"` // nil if the limit depends on the call
	Window string    `json:"window"`
	Key    string    `json:"key,omitempty"`
	Mode   string    `json:"mode"`
	Seen   time.Time `json:"seen,omitzero"`
}

func (t *tool) printRules(ctx context.Context, _ []string, _ options) error {
	rules, err := t.rules(ctx)
	if err != nil {
		return err
	}
	lines, shown := [][]string{{"RULE", "LIMIT", "KEY", "MODE", "SEEN"}}, []shownRule{}
	for _, r := range rules {
		row := shownRule{Rule: r.Name, Window: r.Window(), Key: r.Key, Mode: r.Mode.String(), Seen: r.Seen}
		limit, seen := "varies", "not yet"
		if !r.Varies {
			row.Limit, limit = &r.Limit, strconv.FormatInt(r.Limit, 10)
		}
		if !r.Seen.IsZero() {
			seen = local(r.Seen)
		}
		shown = append(shown, row)
		lines = append(lines, []string{r.Name, limit + " " + perWindow(row.Window), r.Key, row.Mode, seen})
	}
	return t.print(shown, lines...)
}

// perWindow puts a window into words, as errors do: "per hour (leaky-bucket)" for "leaky:1h".
func perWindow(window string) string {
	return strings.TrimPrefix(ratelimit.Violation{Window: window}.String(), "0 ")
}

// find returns the rules of a name.
func (t *tool) find(ctx context.Context, name string) ([]ratelimit.UsedRule, error) {
	rules, err := t.rules(ctx)
	if err != nil {
		return nil, err
	}
	rules = slices.DeleteFunc(rules, func(r ratelimit.UsedRule) bool { return r.Name != name })
	if len(rules) == 0 {
		return nil, fmt.Errorf("no limiter of prefix %q has used a rule %q within a day; \"ratelimitctl rules\" lists the rules in use; give others with -rules", t.prefix, name)
	}
	return rules, nil
}

// requests returns requests for a key under all rules of a name.
func (t *tool) requests(ctx context.Context, args []string) ([]ratelimit.Request, error) {
	rules, err := t.find(ctx, args[0])
	if err != nil {
		return nil, err
	}
	key := ""
	if len(args) > 1 {
		key = args[1]
	}
	var requests []ratelimit.Request
	for _, r := range rules {
		if r.Key != "" && key == "" {
			return nil, misused(fmt.Sprintf("rule %s counts by %s: name a key", r.Name, r.Key))
		}
		if r.Key == "" && key != "" {
			return nil, misused(fmt.Sprintf("rule %s has one count for everybody: leave out the key", r.Name))
		}
		requests = append(requests, ratelimit.Request{Rule: r.Rule, Key: key})
	}
	return requests, nil
}

func (t *tool) reset(ctx context.Context, args []string, _ options) error {
	requests, err := t.requests(ctx, args)
	if err != nil {
		return err
	}
	n, err := t.limiter.Reset(ctx, requests...)
	if err != nil {
		return err
	}
	return t.print(map[string]int{"forgotten": n}, []string{counted(int64(n), "count") + " forgotten"})
}
