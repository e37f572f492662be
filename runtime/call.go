package ratelimit

import (
	"context"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// call is one decision: what is asked, the decision, and what is told. Calls are pooled, so that a decision in this process allocates nothing.
type call struct {
	status
	asked   engine.Call // the claims of the rules that a store decides
	rulings []ruling    // one for each rule that applies
	owners  []int       // for each rule of the method, or each request: the index in rulings of the ruling that covers it, or -1
	event   Event       // what observers are told
}

// status is the state of a call that is reset for every use of a pooled call.
type status struct {
	limiter *Limiter
	method  string      // "" for requests
	rules   []*prepared // of the method
	next    int         // the index of the rule or request to ask next
	err     error       // why the call cannot be decided

	patient   bool          // for Wait: any rule may delay the call by wait, whatever its own Wait is
	wait      time.Duration // how long the call may wait, if it is patient
	waits     bool          // a rule may delay the call
	paused    bool          // a setting pauses one of its subjects
	reports   bool          // the caller wants the quotas
	releases  bool          // a rule's permits are released when calls end
	never     bool          // a rule of limit 0 refuses the call
	isBlocked bool          // one of its subjects is blocked

	spot   *fleet.Waiter // its position in its line, or nil
	full   *ruling       // the rule for whose permits it waits until others release them, or nil
	began  time.Time     // when it began to wait
	asksAt time.Time     // when it asks again if it is the first call that holds in its line

	verdict   engine.Verdict
	waited    time.Duration // how long the call waited until it was admitted
	abandoned bool          // the context ended while the call waited
}

var calls = sync.Pool{New: func() any { return new(call) }}

func (l *Limiter) newCall(method string) *call {
	c := calls.Get().(*call)
	c.status = status{limiter: l, method: method}
	c.asked = engine.Call{Prefix: l.prefix, Claims: c.asked.Claims[:0]}
	c.rulings, c.owners = c.rulings[:0], c.owners[:0]
	return c
}

// free returns c to the pool.
func (c *call) free() { calls.Put(c) }

// run asks the rules' stores, waits if the call has to, and tells everybody who wants to know.
func (c *call) run(ctx context.Context) error {
	var began time.Duration
	observed := c.limiter.observed() && !c.asked.Peek
	if observed {
		began = c.limiter.elapsed()
	}
	report := reportOf(ctx)
	c.reports = c.asked.Peek || report != nil
	if c.err == nil {
		c.err = c.decide(ctx)
	}
	if c.asked.Peek {
		return c.err
	}
	if s := c.limiter.fleet.Statistics(); s != nil && (c.err == nil || c.isByPolicy()) {
		c.count(s)
	}
	if c.err == nil && report != nil {
		report.add(c.quotas())
	}
	if c.err == nil && c.verdict.Admitted && c.limiter.trigger != nil {
		c.fire(ctx)
	}
	if observed {
		c.observe(ctx, c.limiter.elapsed()-began)
	}
	return c.err
}

// decide decides the call. A call without rules is admitted.
func (c *call) decide(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return contextError(ctx, c.method)
	case c.refusedHere():
		c.verdict.Now = c.limiter.store.Time().UnixMicro()
		if c.isBlocked {
			c.verdict.Source = engine.SourceBlock
		}
		return nil
	case len(c.asked.Claims) == 0:
		now := c.limiter.store.Time().UnixMicro()
		c.verdict = engine.Verdict{Now: now, At: now, Answer: engine.Answer{Admitted: true}}
		return nil
	}
	c.asked.Report = c.asked.Report || c.reports
	return c.decideInTime(ctx)
}

// refusedHere reports whether the call is refused without asking any store.
func (c *call) refusedHere() bool { return c.never || c.isBlocked }

// isByPolicy reports whether failure policies decided the call, because its store failed.
func (c *call) isByPolicy() bool { return c.verdict.Source == engine.SourcePolicy }

// count counts the answers of the rules in the statistics of the fleet.
func (c *call) count(s *fleet.Statistics) {
	s.Lock()
	defer s.Unlock()
	for i := range c.rulings {
		r := &c.rulings[i]
		if r.rule.Scope == ScopeInstance {
			continue
		}
		n, numbers := fleet.Counts{Calls: 1}, r.rule.numbers
		if c.isByPolicy() {
			n.Failed = 1
		}
		switch refused := !r.isAsked() || !c.refusedHere() && c.claim(r).Refused; {
		case c.err != nil || !refused:
		case r.rule.Mode == ModeEnforce:
			n.Refused = 1
			if r.blockLeft > 0 || r.isAsked() && c.claim(r).Blocked {
				n.Blocked = 1
			}
		default:
			n.Shadow = 1
		}
		s.Count(numbers.Hash(), numbers.Name, numbers.Tag, r.subject, n)
	}
}

// fire calls the limiter's trigger for each rule that has reached its limit.
func (c *call) fire(ctx context.Context) {
	for i := range c.rulings {
		if r := &c.rulings[i]; r.isAsked() && c.claim(r).Fired > 0 {
			c.limiter.trigger(ctx, Trigger{
				Method: c.method, Rule: r.rule.shown, Key: key.Shown(r.subject), Limit: r.limit, Used: c.claim(r).Fired,
			})
		}
	}
}
