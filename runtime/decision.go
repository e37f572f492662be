package ratelimit

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
)

// Decision is the answer to [Limiter.Allow], [Limiter.Wait], [Limiter.Reserve] and [Limiter.Peek].
//
// If nothing else is charged or given back meanwhile, the same call passes after RetryAfter, and not a microsecond earlier by the store's
// clock. RetryAfter may be too long in three cases: under a Lease, if its permits come back unused; in a sliding window of amounts with more
// than 2,048 calls, by at most a 2,048th of the window; and in package plain, by at most a millisecond. [Limiter.Reserve] has two more. RetryAfter
// may be too short in one case: a call has several rules, and other calls wait under them. A rule that admits the call now may have promised its later
// permits to the calls that wait. Then it refuses the call after RetryAfter, and says how much longer. Rules with [Concurrency] add nothing.
//
// For example, a rule of ten permits a minute is asked for 3 permits. Two are left, and the next one comes back in 5 seconds. Then the call
// is not Allowed, RetryAfter is 5 seconds, and there is one Violation, with Limit 10 and Remaining 2. With UpTo and a Cost of 3, the call is
// Allowed, and Taken is 2.
type Decision struct {
	Allowed    bool          // all rules admitted the call
	Never      bool          // a rule of limit 0 refuses: retrying is pointless
	RetryAfter time.Duration // until all rules would admit the call, or keep a place for it after Reserve; 0 if it is allowed, or Never
	Violations []Violation   // the rules that refused; if the call is allowed, the rules in shadow mode that would have refused it
	Taken      int64         // for requests with UpTo: the permits taken from each rule; 0 after Peek
	Quotas     []Quota       // what the rules have left; only after Peek, and under a context of [WithReport]
	Source     Source        // what decided

	// At is when the call is admitted or refused, by the store's clock. It is by this process's clock if no store was asked: if no rule
	// applies, a rule has a limit of 0, [Limiter.Block] refuses the subject, or FailOpen decided.
	At time.Time

	// Delay is how long after the decision of [Limiter.Reserve] its At is; 0 means now. It is 0 for other decisions, too. At is by the store's clock,
	// so a program on a machine with another clock sleeps for Delay.
	Delay time.Duration

	charges *decide.Charges // nil if nothing was charged
}

// set sets d, which is zero, to the decision of a call. It is not returned, because a Decision is long to copy.
func (d *Decision) set(c *decide.Call) {
	v := c.Verdict()
	d.Allowed, d.Never, d.Taken, d.At = v.Admitted, c.IsNever(), v.Taken, time.UnixMicro(v.Now)
	d.Source, d.Quotas = Source(v.Source), quotasOf(c)
	if !d.Allowed {
		d.Violations, d.RetryAfter = violationsOf(c, nil, ModeEnforce)
		return
	}
	d.At = time.UnixMicro(v.At)
	if c.Reserves {
		d.Delay = c.Waited()
	}
	d.Violations, _ = violationsOf(c, nil, ModeShadow)
	if !c.Peek {
		d.charges = c.Charges()
	}
}

// Refund gives this charge back, once; later calls return nil. A refusal has nothing to give back. Permits that have left their window are
// back already. A bucket keeps no history: it gets back what it cannot have gained again between this charge and its latest one, and little or
// nothing while calls wait for it. At 100 permits a second, for example, a permit that was taken from a full bucket is back after 10 ms, and
// a refund after that changes nothing.
//
// Before At, Refund gives the place of [Limiter.Reserve] back in the same way as a call of [Limiter.Wait] that gives up. Later places stay where they
// are. A window that the place opened closes. If later places were computed with this one, it becomes free, and the next call that has to wait may
// take it. From At on it is an ordinary refund.
//
// The error is a *StoreError, or wraps the context's. If no server could be reached, the next Refund tries again. If the reply of a
// server was lost, or the context ended meanwhile, it does not: permits may stay taken, but none goes back twice.
func (d Decision) Refund(ctx context.Context) error {
	return d.charges.Refund(ctx)
}

// Settle changes the charge to what the call really cost. Pass one cost for each request, in the same order. If the call cost less than it
// was charged, the difference is given back. If it cost more, the difference is taken now, even beyond the limits. A bucket pays that debt
// before it admits the next call. A debt lasts at most 24 hours: permits beyond that are not charged, and observers are told. Rules with
// Distinct are not settled. A refusal has nothing to settle.
//
// A sliding window that keeps the time of each permit takes at most as many permits as its limit at once, and has at most 100,000. A window of
// amounts has at most 10^9: see Rule.Amounts. If a settlement takes more, the oldest permits are forgotten, also those of other calls.
//
// A rule is settled once, and not after a Refund; later calls return nil. A Refund after Settle gives back what is charged then. If there
// are more or fewer costs than requests, or a cost is below 0, the error is a *RuleError. The other errors are those of Refund.
func (d Decision) Settle(ctx context.Context, costs ...int64) error {
	return d.charges.SettleAll(ctx, costs)
}

// Release says that the call is over: it gives back the permits of rules with [Concurrency], once. Later calls return nil.
// [Decision.Refund] gives those back, too. Permits that are not released end after the rule's Per. The errors are those of Refund. After an
// error the store goes on trying by itself.
func (d Decision) Release(ctx context.Context) error {
	return d.charges.ReleaseNow(ctx)
}

// Source is what decided a call.
type Source uint8

const (
	SourceStore  Source = iota // the limiter's store
	SourceMemory               // this process, which remembers a refusal
	SourceLease                // this process, with permits that it took ahead
	SourcePolicy               // a FailurePolicy, because the store failed
	SourceBlock                // a block: of [Limiter.Block], or one that an earlier refusal by a rule with Block began
	SourcePause                // a pause, which the call could not wait for: see [Limiter.Pause]; or calls that a pause held come first
)

// String returns "store", "memory", "lease", "policy", "block" or "pause".
func (s Source) String() string {
	return word("Source", uint8(s), "store", "memory", "lease", "policy", "block", "pause")
}

// Quota is what one rule has left for one subject. For example, ann has used 7 permits of a rule "search" with a Limit of 10 per minute,
// the first of them 20 seconds ago, and the last one just now: Rule is "search", Window "1m", Key "ann", Limit 10, Remaining 3, Cost 1,
// More 40 seconds, and Reset a minute.
type Quota struct {
	Rule      string        // its name
	Window    string        // see [Rule.Window]
	Key       string        // as in Violation
	Limit     int64         // permits per window; of a bucket, its burst
	Remaining int64         // permits that are left after the decision
	Cost      int64         // permits that the call took, or asked for
	Reset     time.Duration // until all permits are back; 0 if they are back now

	// More is until more than Remaining is there, if nothing else is charged meanwhile. It is 0 if all permits are there, if the limit is 0, and under
	// Concurrency, because nobody knows when calls end. Under Prepay, a subject in debt may call again then. While the subject is blocked or paused,
	// Remaining is 0, and More is no shorter than that. It is as exact as [Decision.RetryAfter].
	More time.Duration

	policy policy
}

// Report collects the quotas of the decisions that are made under a context. It is safe for concurrent use.
type Report struct {
	mu     sync.Mutex
	quotas []reported
}

// reported is a quota of a decision.
type reported struct {
	Quota
	clock decide.Clock
	at    time.Time // of the decision, by the clock
}

// now returns the quota with the times that are left.
func (r *reported) now() Quota {
	q, passed := r.Quota, r.clock.Time().Sub(r.at)
	q.Reset = max(0, q.Reset-passed)
	if q.More > 0 {
		q.More = max(1, q.More-passed) // more is there, and nobody knows how much
	}
	return q
}

// maxQuotas bounds a report. Later quotas are left out.
const maxQuotas = 100

// WithReport returns a context and a report. The report collects the quotas of all decisions made under the context, wherever in the call
// tree. Such a decision costs the store somewhat more. [Limiter.Peek] adds nothing to a report. Nor do rules that are Unreported, or that FailOpen
// decides, because nothing counts their calls.
func WithReport(ctx context.Context) (context.Context, *Report) {
	r := new(Report)
	return withReport(ctx, (*reporter)(r)), r
}

// WithoutReport returns a context whose decisions are in no report. Use it for limits that callers should not see, such as the limits of
// your calls to other services.
func WithoutReport(ctx context.Context) context.Context {
	return withReport(ctx, nil)
}

func withReport(ctx context.Context, r decide.Reporter) context.Context {
	w := decide.WishesOf(ctx)
	w.Report = r
	return w.In(ctx)
}

// reporter implements decide.Reporter.
type reporter Report

// Add adds what the rules of a call have left.
func (r *reporter) Add(c *decide.Call) {
	clock, at := c.Decided()
	(*Report)(r).add(quotasOf(c), clock, at)
}

// Quotas returns the quota of each rule and key after its last decision, in the order of the first decisions. Reset and More count from now: of a call
// that waited for 4 s, or whose handler took so long, they are 4 s shorter than at the decision. A report keeps at most 100 quotas, and leaves out
// later ones.
func (r *Report) Quotas() []Quota {
	r.mu.Lock()
	defer r.mu.Unlock()
	quotas := make([]Quota, len(r.quotas))
	for i := range r.quotas {
		quotas[i] = r.quotas[i].now()
	}
	return quotas
}

func (r *Report) add(quotas []Quota, clock decide.Clock, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, quota := range quotas {
		if quota.policy.unreported {
			continue
		}
		q := reported{quota, clock, at}
		i := slices.IndexFunc(r.quotas, func(o reported) bool { return o.Rule == q.Rule && o.Window == q.Window && o.Key == q.Key })
		switch {
		case i >= 0:
			r.quotas[i] = q
		case len(r.quotas) < maxQuotas:
			r.quotas = append(r.quotas, q)
		}
	}
}

// QuotaPolicy is the part of a rule that clients may know. It names no methods and no keys. For example, a TokenBucket "search" gains 60
// permits a minute and holds 10. Its Name is "search", its Quota 10, and its Window 10 seconds, in which ten permits come back.
type QuotaPolicy struct {
	Name   string        // the rule's own; without one, "rule-1" for the first rule of its method or of the requests
	Quota  int64         // permits per Window; of a bucket, its burst
	Window time.Duration // how long the whole quota takes to come back; 0 for a calendar, because its windows differ, and for Concurrency

	Concurrent bool // the rule is a Concurrency: Quota is how many permits calls may have at once, such as 4
}

// policy holds what a QuotaPolicy is made from. Most are never made.
type policy struct {
	index      int32 // of the rule among those of its method, or among the requests
	unnamed    bool
	silent     bool // the rule refuses nothing
	unreported bool // clients should not learn of the rule
	concurrent bool
	window     time.Duration
}

// of returns the policy of the rule. It reports whether clients may know of it.
func (p policy) of(rule string, quota int64) (QuotaPolicy, bool) {
	if p.unnamed {
		rule = ""
	}
	return QuotaPolicy{cmp.Or(rule, "rule-"+strconv.Itoa(int(p.index)+1)), quota, p.window, p.concurrent}, !p.silent && !p.unreported
}

// Policy returns what clients may know about the rule. It reports false for a rule that they should not see: one in shadow or trigger mode, or one
// that is Unreported.
func (v Violation) Policy() (QuotaPolicy, bool) { return v.policy.of(v.Rule, cmp.Or(v.burst, v.Limit)) }

// Policy returns what clients may know about the rule. It reports false for a rule that they should not see: one in shadow or trigger mode, or one
// that is Unreported.
func (q Quota) Policy() (QuotaPolicy, bool) { return q.policy.of(q.Rule, q.Limit) }
