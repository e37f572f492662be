package ratelimit

import (
	"context"
	"time"
)

// Decision is the answer to [Limiter.Allow], [Limiter.Wait] and [Limiter.Peek].
//
// If nothing else is charged or given back meanwhile, the same call passes after RetryAfter, and not a microsecond earlier by the store's
// clock. RetryAfter may be too long in three cases: under a Lease, if its permits come back unused; in a sliding window of amounts with more
// than 2,048 calls, by at most a 2,048th of the window; and in package plain, by at most a millisecond. Rules with [Concurrency] add nothing.
//
// For example, a rule of ten permits a minute is asked for 3 permits. Two are left, and the next one comes back in 5 seconds. Then the call
// is not Allowed, RetryAfter is 5 seconds, and there is one Violation, with Limit 10 and Remaining 2. With UpTo and a Cost of 3, the call is
// Allowed, and Taken is 2.
type Decision struct {
	Allowed    bool          // all rules admitted the call
	Never      bool          // a rule of limit 0 refuses: retrying is pointless
	RetryAfter time.Duration // until all rules would admit the call; 0 if it is allowed, or Never
	Violations []Violation   // the rules that refused; if the call is allowed, the rules in shadow mode that would have refused it
	Taken      int64         // for requests with UpTo: the permits taken from each rule; 0 after Peek
	Quotas     []Quota       // what the rules have left; only after Peek, and under a context of [WithReport]
	Source     Source        // what decided

	// At is when the call is admitted or refused, by the store's clock. It is by this process's clock if no store was asked: if no rule
	// applies, a rule has a limit of 0, [Limiter.Block] refuses the subject, or FailOpen decided.
	At time.Time

	charged *charged // nil if nothing was charged
}

// Refund gives this charge back, once; later calls return nil. A refusal has nothing to give back. Permits that have left their window are
// back already. A bucket keeps no history: it gets back what it cannot have gained again between this charge and its latest one, and little or
// nothing while calls wait for it. At 100 permits a second, for example, a permit that was taken from a full bucket is back after 10 ms, and
// a refund after that changes nothing.
//
// The error is a *StoreError, or wraps the context's. If no server could be reached, the next Refund tries again. If the reply of a
// server was lost, or the context ended meanwhile, it does not: permits may stay taken, but none goes back twice.
func (d Decision) Refund(ctx context.Context) error {
	if d.charged == nil {
		return nil
	}
	return d.charged.refund(ctx, func(*held) bool { return true })
}

// Settle changes the charge to what the call really cost. Pass one cost for each request, in the same order. If the call cost less than it
// was charged, the difference is given back. If it cost more, the difference is taken now, even beyond the limits. A bucket pays that debt
// before it admits the next call. A debt lasts at most 24 hours: permits beyond that are not charged, and observers are told. A sliding
// window keeps at most as many permits as its limit. Rules with Distinct are not settled. A refusal has nothing to settle.
//
// A rule is settled once, and not after a Refund; later calls return nil. A Refund after Settle gives back what is charged then. If there are more or fewer costs than requests, or a cost is below 0, the
// error is a *RuleError. The other errors are those of Refund.
func (d Decision) Settle(ctx context.Context, costs ...int64) error {
	if d.charged == nil {
		return nil
	}
	return d.charged.settle(ctx, costs)
}

// Source is what decided a call.
type Source uint8

const (
	SourceStore  Source = iota // the limiter's store
	SourceMemory               // this process, which remembers a refusal
	SourceLease                // this process, with permits that it took ahead
	SourcePolicy               // a FailurePolicy, because the store failed
	SourceBlock                // a block: of [Limiter.Block], or one that an earlier refusal by a rule with Block began
	SourcePause                // a pause, which the call could not wait for: see [Limiter.Pause]
)

// String returns "store", "memory", "lease", "policy", "block" or "pause".
func (s Source) String() string {
	return word("Source", uint8(s), "store", "memory", "lease", "policy", "block", "pause")
}
