package ratelimit

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// UsedRule is a rule that some limiter uses. For example, two processes declare a limit of 100, and a third, newer one declares 200. Then Limits
// is {100: 2, 200: 1}, and DeclaredBy is {100: {"shop 17 on web-1", "shop 31 on web-2"}, 200: {"shop 18 on web-3"}}.
type UsedRule struct {
	Rule
	Seen       time.Time          // when a process last said that it uses the rule, by the store's clock
	Limits     map[int64]int      // how many processes declare each limit now; Computed limits are left out, and during a rollout there may be several
	DeclaredBy map[int64][]string // which processes these are: program, pid and host; under 0 also those in which calls bring the limit
}

// Rules returns the rules that limiters of this prefix on the store use, or used within the last day, sorted by name. There are at most 1,000,
// and none of instance scope. A rule appears some seconds after a wrapper that has it is made, or after its first use or Check. A tool that does
// not know the program can pass the rules to [Limiter.Peek], [Limiter.Reset] and [Limiter.Block]. The error is a *StoreError, or wraps the
// context's.
func (l *Limiter) Rules(ctx context.Context) ([]UsedRule, error) {
	declared, err := l.machine().Fleet().Rules(ctx)
	if err != nil {
		return nil, l.machine().StoreError(ctx, "", err)
	}
	all := map[string]*UsedRule{}
	for _, d := range slices.SortedStableFunc(slices.Values(declared), func(a, b fleet.Declared) int { return a.Seen.Compare(b.Seen) }) {
		rule, err := parseUsed(d.Text)
		if err != nil {
			continue
		}
		id := rule.Name + " " + rule.Window() + " " + rule.Key
		rule.Seen, rule.Limits, rule.DeclaredBy = d.Seen, map[int64]int{}, map[int64][]string{}
		if older := all[id]; older != nil {
			rule.Limits, rule.DeclaredBy = older.Limits, older.DeclaredBy
		}
		if n := len(d.Processes); n > 0 {
			rule.DeclaredBy[rule.Limit] = append(slices.Clip(rule.DeclaredBy[rule.Limit]), d.Processes...)
			if !rule.Computed {
				rule.Limits[rule.Limit] += n
			}
		}
		all[id] = rule // with the limit that was seen last
	}
	var rules []UsedRule
	for _, id := range slices.Sorted(maps.Keys(all)) {
		rules = append(rules, *all[id])
	}
	return rules[:min(len(rules), fleet.MaxRules)], nil
}

// usedText is a rule in the store, as JSON.
type usedText struct {
	Rule
	Unnamed bool `json:"unnamed,omitzero"`
}

// forTools returns the rule without the fields that matter only to the program itself.
func (r Rule) forTools() Rule {
	r.Scope, r.Refund, r.OnError, r.Message = ScopeFleet, RefundNever, DefaultPolicy, ""
	return r
}

// parseUsed parses a rule from the store.
func parseUsed(text string) (*UsedRule, error) {
	var t usedText
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, err
	}
	rule := &UsedRule{Rule: t.forTools()}
	rule.unnamed = t.Unnamed
	return rule, rule.check()
}
