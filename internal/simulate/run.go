package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// Rule is a rule and what a call costs under it.
type Rule struct {
	ratelimit.Rule
	Text string // the directive's arguments, as the user knows them
	Cost int64  // permits that each call takes; 0 leaves it to the load
}

// mostCost is how many permits of a sliding window one request takes at most.
const mostCost = 10_000

// run is one call of Run.
type run struct {
	load    *Load
	rules   []Rule
	limiter *ratelimit.Limiter
	now     time.Time // of the limiter's store

	requests []ratelimit.Request // one for each rule, with the key and the cost of the call that is being decided
	tallies  [][]tally           // by rule and key
	result   *Result
}

// tally counts the refusals of one rule and key.
type tally struct {
	refused int64
	longest time.Duration
	never   bool
}

// Run decides each call of the load under all rules. The rules keep their counts apart, whatever their names are.
func Run(ctx context.Context, rules []Rule, load *Load) (*Result, error) {
	if n := len(rules) * len(load.Keys); n > maxCalls {
		return nil, fmt.Errorf("%d rules and %d keys make %d counts; at most %d are possible", len(rules), len(load.Keys), n, maxCalls)
	}
	r := &run{load: load, rules: rules, result: &Result{Load: load}}
	counts := 2 * len(rules) * max(1, len(load.Keys)) // a rule has at most its state and its block
	r.limiter = ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { return r.now }), memstore.WithMaxKeys(counts)))
	for i, rule := range rules {
		if i := slices.IndexFunc(load.Keys, isEmpty); rule.Key != "" && i >= 0 {
			return nil, fmt.Errorf("the rule %q has a key, but a call of the load has none", rule.Text)
		}
		rule.Name = strconv.Itoa(i) // which sets its counts apart, and is found again in violations
		r.requests = append(r.requests, ratelimit.Request{Rule: rule.Rule})
		r.tallies = append(r.tallies, make([]tally, len(load.Keys)))
	}
	if err := r.decideAll(ctx); err != nil {
		return nil, err
	}
	r.summarize()
	return r.result, nil
}

func isEmpty(key string) bool { return key == "" }

// decideAll decides all calls, and measures the budget left at regular times between them.
func (r *run) decideAll(ctx context.Context) error {
	line := newTimeline(r.load, len(r.rules))
	left := func(at time.Duration) ([]int64, error) { return r.left(ctx, line.busiest, at) }
	for _, call := range r.load.Calls {
		if err := line.sampleUntil(call.After, left); err != nil {
			return err
		}
		admitted, err := r.decide(ctx, call)
		if err != nil {
			return err
		}
		line.count(call.After, admitted)
		if admitted {
			r.result.Admitted++
		} else {
			r.result.Refused++
		}
	}
	err := line.sampleUntil(r.load.Length, left)
	r.result.Timeline = line.Timeline
	return err
}

// decide decides one call and counts which rules refuse it.
func (r *run) decide(ctx context.Context, call Call) (admitted bool, err error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	r.now = r.load.Start.Add(call.After)
	for i := range r.requests {
		r.requests[i].Key = r.subject(i, call.Key)
		r.requests[i].Cost = cmp.Or(r.rules[i].Cost, call.Cost)
	}
	d, err := r.limiter.Allow(ctx, r.requests...)
	if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); ok {
		t, err := r.tally(never.Rule, call)
		if err == nil {
			t.refused, t.never = t.refused+1, true
		}
		return false, err
	}
	if err != nil {
		return false, r.explain(err)
	}
	for _, v := range d.Violations {
		t, err := r.tally(v.Rule, call)
		if err != nil {
			return false, err
		}
		t.refused, t.longest, t.never = t.refused+1, max(t.longest, v.RetryAfter), t.never || v.Never
	}
	return d.Allowed, nil
}

// tally returns that of the rule which a limiter names.
func (r *run) tally(name string, call Call) (*tally, error) {
	i, err := strconv.Atoi(name)
	if err != nil || i >= len(r.rules) {
		return nil, fmt.Errorf("internal error: a rule %q refused", name)
	}
	return &r.tallies[i][call.Key], nil
}

// subject is whose permits a call of the key takes under a rule.
func (r *run) subject(rule, key int) string {
	if r.rules[rule].Key == "" {
		return ""
	}
	return r.load.Keys[key]
}

// left returns how many permits of each rule a key could take at a time.
func (r *run) left(ctx context.Context, key int, at time.Duration) ([]int64, error) {
	r.now = r.load.Start.Add(at)
	left := make([]int64, len(r.rules))
	for i, rule := range r.rules {
		low, high := int64(0), rule.capacity()
		for low < high { // low fits, and more than high does not
			cost := high - (high-low)/2
			fits, err := r.fits(ctx, i, key, cost)
			if err != nil {
				return nil, err
			}
			if fits {
				low = cost
			} else {
				high = cost - 1
			}
		}
		left[i] = low
	}
	return left, nil
}

// fits reports whether a rule would admit a call of the key, now, whatever the rule's mode is.
func (r *run) fits(ctx context.Context, rule, key int, cost int64) (bool, error) {
	request := ratelimit.Request{Rule: r.requests[rule].Rule, Key: r.subject(rule, key)}
	request.Rule.Mode = ratelimit.ModeEnforce
	var all []ratelimit.Request
	for ; cost > 0; cost -= mostCost { // equal requests add their costs
		request.Cost = min(cost, mostCost)
		all = append(all, request)
	}
	d, err := r.limiter.Peek(ctx, all...)
	return d.Allowed, r.explain(err)
}

// explain puts the text of a rule in place of its name.
func (r *run) explain(err error) error {
	wrong, ok := errors.AsType[*ratelimit.RuleError](err)
	if !ok {
		return err
	}
	if i, err := strconv.Atoi(wrong.Rule); err == nil && i < len(r.rules) {
		return fmt.Errorf("the rule %q: %s: %s", r.rules[i].Text, wrong.Argument, wrong.Reason)
	}
	return err
}

// capacity is the most permits that a call can take at once. For buckets that store none, it is one.
func (r Rule) capacity() int64 {
	switch {
	case r.Limit == 0:
		return 0
	case r.Algorithm == ratelimit.LeakyBucket || r.Prepay || r.Warmup > 0:
		return 1
	case r.Burst > 0:
		return r.Burst
	}
	return r.Limit
}
