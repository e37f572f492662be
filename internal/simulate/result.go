package simulate

import (
	"cmp"
	"slices"
	"time"
)

// Result is what became of a load.
type Result struct {
	Load     *Load
	Admitted int64 // calls
	Waited   int64 // calls that were admitted, but not at once
	Refused  int64 // calls
	// LongestWait is that of a call that was admitted.
	LongestWait time.Duration
	Rules       []RuleResult
	Timeline    Timeline
}

// RuleResult is what one rule did. In shadow mode, its refusals are those that there would have been.
type RuleResult struct {
	Rule Rule
	All  KeyResult   // the calls of all keys
	Keys []KeyResult // the keys of which it refused a call; the most refused first. None if the rule has no key
}

// KeyResult is what one rule did to the calls of one key.
type KeyResult struct {
	Key          string
	Calls        int64
	Refused      int64
	LongestDelay time.Duration // the longest retry delay that the rule told
	Never        bool          // it refused a call that it can never admit
}

// together adds up the results of keys.
func together(keys []KeyResult) (all KeyResult) {
	for _, k := range keys {
		all.Calls, all.Refused = all.Calls+k.Calls, all.Refused+k.Refused
		all.LongestDelay, all.Never = max(all.LongestDelay, k.LongestDelay), all.Never || k.Never
	}
	return all
}

// summarize turns the tallies into results by rule.
func (r *run) summarize() {
	calls := make([]int64, len(r.load.Keys))
	for _, c := range r.load.Calls {
		calls[c.Key]++
	}
	for i, rule := range r.rules {
		var keys []KeyResult
		for key, t := range r.tallies[i] {
			keys = append(keys, KeyResult{r.load.Keys[key], calls[key], t.refused, t.longest, t.never})
		}
		result := RuleResult{Rule: rule, All: together(keys)}
		if rule.Key != "" {
			result.Keys = slices.DeleteFunc(keys, func(k KeyResult) bool { return k.Refused == 0 })
			slices.SortStableFunc(result.Keys, func(a, b KeyResult) int { return cmp.Compare(b.Refused, a.Refused) })
		}
		r.result.Rules = append(r.result.Rules, result)
	}
}
