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
	Cost int64  // the permits that each call takes; 0 means the cost in the load, or else 1

	Method                                    string // pkg.Type.Method; Run needs none
	CostExpr, LimitExpr, WhenExpr, AnchorExpr string // the expressions of these arguments, for [Compare]; "" if they have none

	Ignored []string // the arguments that are expressions of a program; cost= is simulated if the load has costs
}

// MarshalText returns the text of the rule.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.Text), nil }

// run is the state of one call of Run.
type run struct {
	*simulator
	load     *Load
	priced   bool // calls of the load have costs
	anchored bool // calls of the load have anchors
	rules    []Rule

	prepared prepared
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
	r := &run{load: load, rules: rules, simulator: newSimulator(counts, load.Runs)}
	r.priced = slices.ContainsFunc(load.Calls, func(c Call) bool { return c.Cost != noCost })
	r.anchored = slices.ContainsFunc(load.Calls, func(c Call) bool { return !c.Anchor.IsZero() })
	r.first = make([]time.Duration, len(load.Keys))
	for _, call := range slices.Backward(load.Calls) {
		r.first[call.Key] = call.After
	}
	err := r.prepare()
	if err == nil {
		err = r.decideAll(ctx)
	}
	if err != nil {
		return nil, r.explain(err)
	}
	r.result.summarize()
	return r.result, nil
}

// prepare checks the rules. It gives them their indices as names, to keep their counts apart and to identify them in events.
func (r *run) prepare() (err error) {
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
		named = append(named, rule.Rule)
		rule.Mode = ratelimit.ModeEnforce // the remaining budget does not depend on the mode
		r.requests = append(r.requests, ratelimit.Request{Rule: rule.Rule, Key: r.subject(i, busiest), Member: "any"})
	}
	r.charges = make([]wrap.Charge, len(named))
	r.prepared, err = r.simulator.prepare("simulate", named)
	return err
}

// missing returns an error if a rule needs keys, costs or members that the load does not have.
func (r *run) missing(rule Rule) error {
	switch l := r.load; {
	case rule.Key != "" && l.without["key"] > 0:
		return l.lacks("key", rule)
	case rule.Distinct != "" && len(l.Members) == 0:
		return fmt.Errorf("the rule %q counts distinct members, which calls of this load lack; use -load csv:FILE, with a member in the fourth field of each line", rule.Text)
	case rule.Distinct != "" && l.without["member"] > 0:
		return l.lacks("member", rule)
	case r.priced && slices.Contains(rule.Ignored, costArgument) && l.without["cost"] > 0:
		return l.lacks("cost", rule)
	}
	return nil
}

// costArgument is simulated by the costs of the load, if it has costs.
const costArgument = "cost="

// ignored returns the arguments of a rule that are not simulated with this load.
func (r *run) ignored(rule Rule) []string {
	return slices.DeleteFunc(slices.Clone(rule.Ignored), func(name string) bool {
		return name == costArgument && r.priced || name == "anchor=" && r.anchored
	})
}

// decideAll decides all calls, and measures the remaining budget at regular times.
func (r *run) decideAll(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer r.stop()
	defer cancel()
	for _, call := range r.load.Calls {
		if err := r.advance(ctx, call.After); err != nil {
			return err
		}
		r.setCharges(call)
		err := r.decide(ctx, r.prepared, r.charges, func(e *ratelimit.Event, err error) error {
			if err == nil {
				r.count(call, e)
			}
			return err
		})
		if err != nil {
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
			return err
		}
		r.result.Timeline.Left[i] = append(left, d.Quotas[0].Remaining)
	}
	return nil
}

// setCharges sets what a call charges each rule.
func (r *run) setCharges(call Call) {
	for i, rule := range r.rules {
		r.charges[i] = wrap.Charge{Key: r.subject(i, call.Key), Cost: rule.cost(call)}
		if rule.Distinct != "" {
			r.charges[i].Member, r.charges[i].Cost = r.load.Members[call.Member], 1
		}
		if rule.Every != "" {
			r.charges[i].Anchor = r.anchor(rule, call)
		}
	}
}

// cost returns the permits that a call takes from the rule.
func (r Rule) cost(call Call) int64 {
	if r.Cost == 0 && call.Cost != noCost {
		return call.Cost
	}
	return cmp.Or(r.Cost, 1)
}

// anchor returns the time from which the windows of a rule count for a call: that of the load, or else the first call of the key.
func (r *run) anchor(rule Rule, call Call) time.Time {
	if !call.Anchor.IsZero() {
		return call.Anchor
	}
	first := r.load.Calls[0].After
	if rule.Key != "" {
		first = r.first[call.Key]
	}
	return r.load.Start.Add(first)
}

// count counts the decision of a call.
func (r *run) count(call Call, e *ratelimit.Event) {
	t := &r.result.Timeline
	at := t.at(call)
	switch verdict(e) {
	case Refused:
		t.Refused[at]++
	case Waited:
		t.Admitted[at]++
		t.Waited[at]++
		r.result.LongestWait = max(r.result.LongestWait, Duration(e.Waited))
	case Admitted:
		t.Admitted[at]++
	}
	for i := range r.rules {
		r.result.Rules[i].Keys[call.Key].Calls++
	}
	for i := range e.Rules {
		o := &e.Rules[i]
		if result := e.Result(o); result == ratelimit.ResultRefused || result == ratelimit.ResultShadowRefused {
			k := &r.result.Rules[indexOf(o.Rule)].Keys[call.Key]
			k.Refused, k.LongestDelay, k.Never = k.Refused+1, max(k.LongestDelay, Duration(o.RetryAfter)), k.Never || o.Never
		}
	}
}

// indexOf returns the index of a rule with a name from prepare.
func indexOf(name string) int {
	i, _ := strconv.Atoi(name)
	return i
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
	if wrong, ok := errors.AsType[*ratelimit.RuleError](err); ok {
		return fmt.Errorf("the rule %q: %s: %s", r.rules[indexOf(wrong.Rule)].Text, wrong.Argument, wrong.Reason)
	}
	if wrong, ok := errors.AsType[*ratelimit.KeyError](err); ok {
		return fmt.Errorf("the rule %q: %s", r.rules[indexOf(wrong.Rule)].Text, wrong.Reason)
	}
	return err
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
