package simulate

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
)

// Result is the result of a simulation. As JSON it has everything that the table and the picture show, and all refused keys.
type Result struct {
	Load     *Load `json:"-"`
	Admitted int64 `json:"admitted"`         // calls
	Waited   int64 `json:"waited,omitempty"` // calls that were admitted, but not at once
	// LongestWait is the longest wait of an admitted call.
	LongestWait Duration     `json:"longestWait,omitempty"`
	Refused     int64        `json:"refused"` // calls
	Rules       []RuleResult `json:"rules"`
	Timeline    Timeline     `json:"timeline"`
}

// RuleResult is the result for one rule. In shadow mode, it counts the calls that the rule would have refused.
type RuleResult struct {
	Rule    Rule        `json:"rule"`
	All     KeyResult   `json:"all"` // the calls of all keys
	Ignored []string    `json:"notSimulated,omitempty"`
	Keys    []KeyResult `json:"keys"` // the keys with refused calls, the most refused first; none if the rule has no key
}

// KeyResult is the result for the calls of one key under one rule.
type KeyResult struct {
	Key          string   `json:"key,omitempty"` // "" for all keys
	Calls        int64    `json:"calls"`
	Refused      int64    `json:"refused"`
	LongestDelay Duration `json:"longestRetryDelay"` // the longest retry delay of a refusal
	Never        bool     `json:"never,omitempty"`   // it refused a call that it can never admit
}

// Duration is a duration that prints as in directives, such as 1d, but is written to JSON in the format of [time.ParseDuration].
type Duration time.Duration

func (d Duration) String() string { return period.Format(time.Duration(d)) }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// MarshalJSON implements json.Marshaler.
func (r *Result) MarshalJSON() ([]byte, error) {
	type fields Result
	return json.Marshal(struct {
		Load   string    `json:"load"`
		Start  time.Time `json:"start"`
		Length Duration  `json:"length"`
		Calls  int       `json:"calls"`
		*fields
	}{r.Load.Text, r.Load.Start, Duration(r.Load.Length), len(r.Load.Calls), (*fields)(r)})
}

// together returns the sum of the results of keys.
func together(keys []KeyResult) (all KeyResult) {
	for _, k := range keys {
		all.Calls, all.Refused = all.Calls+k.Calls, all.Refused+k.Refused
		all.LongestDelay, all.Never = max(all.LongestDelay, k.LongestDelay), all.Never || k.Never
	}
	return all
}

// summarize adds up the calls, and removes the keys without refused calls from the results of rules.
func (r *Result) summarize() {
	t := &r.Timeline
	r.Admitted, r.Waited, r.Refused = t.Admitted.sum(), t.Waited.sum(), t.Refused.sum()
	for i := range r.Rules {
		rule := &r.Rules[i]
		rule.All = together(rule.Keys)
		rule.Keys = slices.DeleteFunc(rule.Keys, func(k KeyResult) bool { return k.Refused == 0 || rule.Rule.Key == "" })
		slices.SortStableFunc(rule.Keys, func(a, b KeyResult) int { return cmp.Compare(b.Refused, a.Refused) })
	}
}
