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
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Rule is a rule and what a call costs under it.
type Rule struct {
	ratelimit.Rule
	Text string // the directive's arguments, as the user knows them
	Cost int64  // permits that each call takes; 0 leaves it to the load

	Ignored []string // the arguments that are not simulated, since a load does not tell what they depend on
}

// run is one call of Run.
type run struct {
	*line
	load    *Load
	rules   []Rule
	limiter *ratelimit.Limiter

	prepared *wrap.Rules
	charges  []wrap.Charge       // one for each rule: what the call that is being decided takes
	requests []ratelimit.Request // one for each rule: what is left for the busiest key
	tallies  [][]tally           // by rule and key
	result   *Result
	timeline *timeline
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
	r := &run{load: load, rules: rules, result: &Result{Load: load}, timeline: newTimeline(load, len(rules))}
	counts := 3 * len(rules) * max(1, len(load.Keys)) // a rule has at most its state, its block, and its free places
	r.line = newLine(counts)
	r.limiter = ratelimit.New(r.line, ratelimit.WithObserver(r.observe))
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if err := r.decideAll(ctx); err != nil {
		return nil, err
	}
	r.summarize()
	return r.result, nil
}

// prepare checks the rules, and gives them names that set their counts apart and tell them in events.
func (r *run) prepare() error {
	var named []ratelimit.Rule
	for i, rule := range r.rules {
		if err := r.missing(rule); err != nil {
			return err
		}
		rule.Name = strconv.Itoa(i)
		if err := rule.Validate(); err != nil {
			return r.explain(err)
		}
		named = append(named, rule.Rule)
		rule.Mode = ratelimit.ModeEnforce // what is left does not depend on it
		r.requests = append(r.requests, ratelimit.Request{Rule: rule.Rule, Key: r.subject(i, r.timeline.busiest), Member: "any"})
		r.tallies = append(r.tallies, make([]tally, len(r.load.Keys)))
		r.parks, r.keyed = r.parks || rule.Wait > 0 && len(r.rules) > 1, r.keyed || rule.Key != ""
	}
	r.prepared, r.charges = wrap.NewRules("simulate", named...), make([]wrap.Charge, len(named))
	return nil
}

// missing returns what a rule needs of the calls that the load does not have.
func (r *run) missing(rule Rule) error {
	if rule.Key != "" && slices.Contains(r.load.Keys, "") {
		return fmt.Errorf("the rule %q has a key, but a call of the load has none", rule.Text)
	}
	if rule.Distinct != "" && (len(r.load.Members) == 0 || slices.Contains(r.load.Members, "")) {
		return fmt.Errorf("the rule %q counts distinct members, which calls of this load lack; use -load csv:FILE, with a member in the fourth field of each line", rule.Text)
	}
	return nil
}

// decideAll decides all calls, and measures the budget left at regular times between them.
func (r *run) decideAll(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer r.leave()
	defer cancel()
	for _, call := range r.load.Calls {
		if err := r.advance(ctx, call.After); err != nil {
			return err
		}
		if err := r.enter(call, func() error { return r.decide(ctx, call) }); err != nil {
			return err
		}
	}
	if err := r.advance(ctx, r.load.Length); err != nil {
		return err
	}
	r.result.Timeline = r.timeline.Timeline
	return r.wakeUntil(ctx, longest)
}

// advance wakes who waits, and measures what is left, until a time since the start of the load.
func (r *run) advance(ctx context.Context, to time.Duration) error {
	err := r.timeline.sampleUntil(to, func(at time.Duration) ([]int64, error) {
		if err := r.wakeUntil(ctx, r.load.Start.Add(at)); err != nil {
			return nil, err
		}
		return r.left(ctx)
	})
	if err != nil {
		return err
	}
	return r.wakeUntil(ctx, r.load.Start.Add(to))
}

// decide decides one call as generated code does. The observer counts what becomes of it.
func (r *run) decide(ctx context.Context, call Call) error {
	for i, rule := range r.rules {
		r.charges[i] = wrap.Charge{Key: r.subject(i, call.Key), Cost: cmp.Or(rule.Cost, call.Cost, 1)}
		if rule.Distinct != "" {
			r.charges[i].Member = r.load.Members[call.Member]
		}
	}
	err := wrap.TakeCharges(ctx, r.limiter, r.prepared, r.charges...)
	if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); ok {
		return r.refuseForEver(never.Rule)
	}
	if errors.Is(err, ratelimit.ErrTooManyRequests) {
		return nil
	}
	return r.explain(err)
}

// refuseForEver counts a call that costs more than a rule can admit.
func (r *run) refuseForEver(rule string) error {
	i, err := strconv.Atoi(rule)
	if err != nil || i >= len(r.rules) {
		return fmt.Errorf("internal error: a rule %q refused", rule)
	}
	t := &r.tallies[i][r.current.call.Key]
	t.refused, t.never = t.refused+1, true
	r.count(r.current.call, refused, 0)
	return nil
}

// observe counts what became of the call that is being decided.
func (r *run) observe(_ context.Context, e *ratelimit.Event) {
	call := r.current.call
	switch {
	case e.Kind == ratelimit.EventRefused:
		r.count(call, refused, 0)
	case e.Kind == ratelimit.EventAdmitted && e.Waited > 0:
		r.count(call, waited, e.Waited)
	case e.Kind == ratelimit.EventAdmitted:
		r.count(call, admitted, 0)
	}
	for i := range e.Rules {
		o := &e.Rules[i]
		if result := e.Result(o); result != ratelimit.ResultRefused && result != ratelimit.ResultShadowRefused {
			continue
		}
		if rule, err := strconv.Atoi(o.Rule); err == nil && rule < len(r.rules) {
			t := &r.tallies[rule][call.Key]
			t.refused, t.longest, t.never = t.refused+1, max(t.longest, o.RetryAfter), t.never || o.Never
		}
	}
}

// count counts a call.
func (r *run) count(call Call, what outcome, wait time.Duration) {
	r.timeline.count(call.After, what)
	switch what {
	case refused:
		r.result.Refused++
		return
	case waited:
		r.result.Waited++
		r.result.LongestWait = max(r.result.LongestWait, wait)
	}
	r.result.Admitted++
}

// subject is whose permits a call of the key takes under a rule.
func (r *run) subject(rule, key int) string {
	if r.rules[rule].Key == "" {
		return ""
	}
	return r.load.Keys[key]
}

// left returns how many permits of each rule the busiest key could take now.
func (r *run) left(ctx context.Context) ([]int64, error) {
	left := make([]int64, len(r.rules))
	for i := range r.requests {
		d, err := r.limiter.Peek(ctx, r.requests[i])
		if err != nil {
			return nil, r.explain(err)
		}
		left[i] = d.Quotas[0].Remaining
	}
	return left, nil
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
	case r.Algorithm == ratelimit.LeakyBucket || r.Warmup > 0:
		return 1
	case r.Burst > 0:
		return r.Burst
	}
	return r.Limit
}
