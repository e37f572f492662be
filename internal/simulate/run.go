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

// Rule is a rule to simulate.
type Rule struct {
	ratelimit.Rule
	Text string // the arguments of the directive
	Cost int64  // the permits that each call takes; 0 means the cost in the load

	Method                                    string // pkg.Type.Method; Run needs none
	CostExpr, LimitExpr, WhenExpr, AnchorExpr string // the expressions of these arguments, for [Compare]; "" if they have none

	Ignored []string // the arguments that are expressions of a program; cost= is simulated if the load has costs
}

// MarshalText returns the text of the rule.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.Text), nil }

// run is the state of one call of Run.
type run struct {
	*line
	load    *Load
	priced  bool // calls of the load have costs
	rules   []Rule
	limiter *ratelimit.Limiter

	prepared *wrap.Rules
	limits   *wrap.Limits
	first    []time.Duration     // when the first call of each key is, since the start of the load
	charges  []wrap.Charge       // the charges of the current call, one for each rule
	requests []ratelimit.Request // the requests that measure the budget of the busiest key, one for each rule
	due      time.Duration       // the time of the next measurement, since the start of the load
	result   *Result             // has all keys of each rule until it is summarized
}

// maxRules is the largest number of rules that a call can have.
const maxRules = 255

// Run decides each call of the load under all rules, at most 255. Each rule has counts of its own, even if rules have the same name.
func Run(ctx context.Context, rules []Rule, load *Load) (*Result, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("found %d rules; a call has at most %d", len(rules), maxRules)
	}
	if n := len(rules) * len(load.Keys); n > maxCalls {
		return nil, fmt.Errorf("%d rules and %d keys make %d counts; at most %d are possible", len(rules), len(load.Keys), n, maxCalls)
	}
	counts := 3 * len(rules) * max(1, len(load.Keys)) // for each key, a rule has at most a state, a block, and free places
	r := &run{load: load, rules: rules, line: newLine(counts)}
	r.priced = slices.ContainsFunc(load.Calls, func(c Call) bool { return c.Cost > 0 })
	r.first = make([]time.Duration, len(load.Keys))
	for _, call := range slices.Backward(load.Calls) {
		r.first[call.Key] = call.After
	}
	r.limiter = ratelimit.New(r.line, ratelimit.WithObserver(r.observe))
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if err := r.decideAll(ctx); err != nil {
		return nil, err
	}
	r.result.summarize()
	return r.result, nil
}

// prepare checks the rules. It gives them their indices as names, to keep their counts apart and to identify them in events.
func (r *run) prepare() error {
	busiest := r.load.busiest()
	r.result = &Result{Load: r.load, Timeline: newTimeline(r.load, len(r.rules), busiest)}
	var named []ratelimit.Rule
	for i, rule := range r.rules {
		if err := r.missing(rule); err != nil {
			return err
		}
		result := RuleResult{Rule: rule, Ignored: r.ignored(rule), Keys: make([]KeyResult, len(r.load.Keys))}
		for key, name := range r.load.Keys {
			result.Keys[key].Key = name
		}
		r.result.Rules = append(r.result.Rules, result)
		rule.Name = strconv.Itoa(i)
		if err := rule.Validate(); err != nil {
			return r.explain(err)
		}
		named = append(named, rule.Rule)
		rule.Mode = ratelimit.ModeEnforce // the remaining budget does not depend on the mode
		r.requests = append(r.requests, ratelimit.Request{Rule: rule.Rule, Key: r.subject(i, busiest), Member: "any"})
		r.keyed = r.keyed || rule.Key != ""
		r.releases = r.releases || rule.Releases()
	}
	r.prepared, r.charges = wrap.NewRules("simulate", named...), make([]wrap.Charge, len(named))
	r.limits = r.prepared.On(r.limiter)
	return nil
}

// missing returns an error if a rule needs keys, costs or members that the load does not have.
func (r *run) missing(rule Rule) error {
	switch l := r.load; {
	case rule.Key != "" && l.noKey > 0:
		return l.lacks("key", l.noKey, rule)
	case rule.Distinct != "" && len(l.Members) == 0:
		return fmt.Errorf("the rule %q counts distinct members, which calls of this load lack; use -load csv:FILE, with a member in the fourth field of each line", rule.Text)
	case rule.Distinct != "" && l.noMember > 0:
		return l.lacks("member", l.noMember, rule)
	case r.priced && slices.Contains(rule.Ignored, costArgument) && l.noCost > 0:
		return l.lacks("cost", l.noCost, rule)
	}
	return nil
}

// costArgument is simulated by the costs of the load, if it has costs.
const costArgument = "cost="

// ignored returns the arguments of a rule that are not simulated with this load.
func (r *run) ignored(rule Rule) []string {
	anchored := slices.ContainsFunc(r.load.Anchors, func(a time.Time) bool { return !a.IsZero() })
	return slices.DeleteFunc(slices.Clone(rule.Ignored), func(name string) bool {
		return name == costArgument && r.priced || name == "anchor=" && anchored
	})
}

// decideAll decides all calls, and measures the remaining budget at regular times.
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
	return r.wakeUntil(ctx, longest)
}

// advance moves virtual time to a time since the start of the load. It wakes waiting calls and measures the budget on the way.
func (r *run) advance(ctx context.Context, to time.Duration) error {
	for ; r.due <= to; r.due += time.Duration(r.result.Timeline.LeftStep) { // measures before the calls of the same time
		if err := r.wakeUntil(ctx, r.load.Start.Add(r.due)); err != nil {
			return err
		}
		if err := r.measure(ctx); err != nil {
			return err
		}
	}
	return r.wakeUntil(ctx, r.load.Start.Add(to))
}

// measure adds to the timeline how many permits of each rule the busiest key could take now.
func (r *run) measure(ctx context.Context) error {
	for i, left := range r.result.Timeline.Left {
		d, err := r.limiter.Peek(ctx, r.requests[i])
		if err != nil {
			return r.explain(err)
		}
		r.result.Timeline.Left[i] = append(left, d.Quotas[0].Remaining)
	}
	return nil
}

// decide decides one call as generated code does. The observer counts the result.
func (r *run) decide(ctx context.Context, call Call) error {
	for i, rule := range r.rules {
		r.result.Rules[i].Keys[call.Key].Calls++
		r.charges[i] = wrap.Charge{Key: r.subject(i, call.Key), Cost: cmp.Or(rule.Cost, call.Cost, 1)}
		if rule.Distinct != "" {
			r.charges[i].Member = r.load.Members[call.Member]
		}
		if rule.Every != "" {
			r.charges[i].Anchor = r.anchor(rule, call)
		}
	}
	taken, err := wrap.Begin(ctx, r.limits, r.prepared, r.charges...)
	if err == nil {
		r.starts(taken, r.load.Runs)
	}
	if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); ok { // there is no event for this error
		r.refused(never.Rule, 0, true)
		r.result.Timeline.Refused[r.result.Timeline.at(call)]++
		return nil
	}
	if errors.Is(err, ratelimit.ErrTooManyRequests) {
		return nil
	}
	return r.explain(err)
}

// anchor returns the time from which the windows of a rule count for a call: that of the load, or else the first call of the key.
func (r *run) anchor(rule Rule, call Call) time.Time {
	if len(r.load.Anchors) > 0 && !r.load.Anchors[call.Anchor].IsZero() {
		return r.load.Anchors[call.Anchor]
	}
	first := r.load.Calls[0].After
	if rule.Key != "" {
		first = r.first[call.Key]
	}
	return r.load.Start.Add(first)
}

// observe counts the result of the current call.
func (r *run) observe(_ context.Context, e *ratelimit.Event) {
	t := &r.result.Timeline
	at := t.at(r.current.call)
	switch {
	case e.Kind == ratelimit.EventRefused:
		t.Refused[at]++
	case e.Kind == ratelimit.EventAdmitted:
		t.Admitted[at]++
		if e.Waited > 0 {
			t.Waited[at]++
			r.result.LongestWait = max(r.result.LongestWait, Duration(e.Waited))
		}
	}
	for i := range e.Rules {
		o := &e.Rules[i]
		if result := e.Result(o); result == ratelimit.ResultRefused || result == ratelimit.ResultShadowRefused {
			r.refused(o.Rule, o.RetryAfter, o.Never)
		}
	}
}

// refused counts a refusal of the current call by a rule.
func (r *run) refused(rule string, delay time.Duration, never bool) {
	i, _ := strconv.Atoi(rule) // the name is the index, from prepare
	k := &r.result.Rules[i].Keys[r.current.call.Key]
	k.Refused, k.LongestDelay, k.Never = k.Refused+1, max(k.LongestDelay, Duration(delay)), k.Never || never
}

// subject returns the key text of a call under a rule, or "" if the rule has no key.
func (r *run) subject(rule, key int) string {
	if r.rules[rule].Key == "" {
		return ""
	}
	return r.load.Keys[key]
}

// explain replaces the name of a rule in an error by its text.
func (r *run) explain(err error) error {
	wrong, ok := errors.AsType[*ratelimit.RuleError](err)
	if !ok {
		return err
	}
	i, _ := strconv.Atoi(wrong.Rule) // the name is the index, from prepare
	return fmt.Errorf("the rule %q: %s: %s", r.rules[i].Text, wrong.Argument, wrong.Reason)
}

// capacity returns the most permits that a call can take at once. For buckets that store no permits it is 1.
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
