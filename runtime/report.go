package ratelimit

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Quota is what one rule has left for one subject. For example, ann has used 7 permits of a rule "search" with a Limit of 10 per minute, the
// first of them 20 seconds ago, and the last one just now: Rule is "search", Window "1m", Key "ann", Limit 10, Remaining 3, and Reset a minute.
type Quota struct {
	Rule      string        // its name
	Window    string        // see [Rule.Window]
	Key       string        // as in Violation
	Limit     int64         // permits per window; of a bucket, its burst
	Remaining int64         // permits that are left after the decision
	Reset     time.Duration // until all permits are back; 0 if they are back now

	policy policy
}

// Report collects the quotas of the decisions that are made under a context. It is safe for concurrent use.
type Report struct {
	mu     sync.Mutex
	quotas []Quota
}

// maxQuotas bounds a report. Later quotas are left out.
const maxQuotas = 100

type reportKey struct{}

// WithReport returns a context and a report. The report collects the quotas of all decisions made under the context, wherever in the call
// tree. Such a decision costs the store somewhat more. [Limiter.Peek] adds nothing to a report. Nor do rules that FailOpen decides, because
// nothing counts their calls.
func WithReport(ctx context.Context) (context.Context, *Report) {
	r := new(Report)
	return context.WithValue(ctx, reportKey{}, r), r
}

// WithoutReport returns a context whose decisions are in no report. Use it for limits that callers should not see, such as the limits of
// your calls to other services.
func WithoutReport(ctx context.Context) context.Context {
	return context.WithValue(ctx, reportKey{}, (*Report)(nil))
}

func reportOf(ctx context.Context) *Report {
	r, _ := ctx.Value(reportKey{}).(*Report)
	return r
}

// Quotas returns the quota of each rule and key after its last decision, in the order of the first decisions. A report keeps at most 100
// quotas, and leaves out later ones.
func (r *Report) Quotas() []Quota {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.quotas)
}

func (r *Report) add(quotas []Quota) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range quotas {
		i := slices.IndexFunc(r.quotas, func(o Quota) bool { return o.Rule == q.Rule && o.Window == q.Window && o.Key == q.Key })
		switch {
		case i >= 0:
			r.quotas[i] = q
		case len(r.quotas) < maxQuotas:
			r.quotas = append(r.quotas, q)
		}
	}
}

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
