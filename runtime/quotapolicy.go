package ratelimit

import (
	"cmp"
	"strconv"
	"time"
)

// QuotaPolicy is the part of a rule that clients may know. It names no methods and no keys.
type QuotaPolicy struct {
	Name   string        // the rule's own; without one, "rule-1" for the first rule of its method or of the requests
	Quota  int64         // permits per Window; of a bucket, its burst
	Window time.Duration // how long the whole quota takes to come back; 0 for a calendar, because its windows differ
}

// policy holds what a QuotaPolicy is made from. Most are never made.
type policy struct {
	index   int // of the rule among those of its method, or among the requests
	unnamed bool
	silent  bool // the rule refuses nothing
	quota   int64
	window  time.Duration
}

// of returns the policy of the rule. It reports whether the rule refuses calls.
func (p policy) of(rule string) (QuotaPolicy, bool) {
	if p.unnamed {
		rule = ""
	}
	return QuotaPolicy{cmp.Or(rule, "rule-"+strconv.Itoa(p.index+1)), p.quota, p.window}, !p.silent
}

// Policy returns what clients may know about the rule. It reports false for a rule in shadow or trigger mode, which clients should not see.
func (v Violation) Policy() (QuotaPolicy, bool) { return v.policy.of(v.Rule) }

// Policy returns what clients may know about the rule. It reports false for a rule in shadow or trigger mode, which clients should not see.
func (q Quota) Policy() (QuotaPolicy, bool) { return q.policy.of(q.Rule) }
