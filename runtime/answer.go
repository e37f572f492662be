package ratelimit

import (
	"cmp"
	"context"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// answer is the outcome of a whole call.
type answer struct {
	admitted bool
	taken    int64     // permits that an UpTo call took from each rule
	at       time.Time // when the call was admitted or refused, by the store's clock
	source   Source
	failure  error         // why the store failed, if a policy decided
	waited   time.Duration // how long the call waited until it was admitted
}

// never reports whether the rule refuses every such call.
func (a *asked) never() bool {
	return a.part == nil && a.blockLeft == 0 || a.part != nil && a.claim().Wait == engine.Never
}

// refusedHere reports whether the call is refused without asking any store.
func (c *call) refusedHere() bool { return c.never || c.isBlocked }

// retry returns how long it takes until the rule would admit the call. It is 0 if the rule admits the call now, or never will.
func (a *asked) retry() time.Duration {
	if a.part == nil || a.never() {
		return a.blockLeft
	}
	return max(0, time.Duration(a.claim().Earliest-a.part.verdict.Now)*time.Microsecond)
}

// outcome returns the answer of one rule. Errors, decisions and events are made from it.
func (c *call) outcome(a *asked) Outcome {
	o := Outcome{
		Rule: a.rule.shown, Window: a.rule.window, Key: key.Shown(a.subject), Mode: a.rule.Mode, Limit: a.limit, Cost: a.cost,
	}
	if a.part != nil {
		if c.refusedHere() || !a.claim().Refused { // refusedHere: no store was asked
			return o
		}
		o.Remaining = a.claim().Room
	}
	o.Refused, o.Never, o.RetryAfter = true, a.never(), a.retry()
	return o
}

// violations appends to list the refusals by rules in the given mode. It also returns the longest delay.
func (c *call) violations(list []Violation, mode Mode) (_ []Violation, longest time.Duration) {
	for i := range c.asked {
		a := &c.asked[i]
		o := c.outcome(a)
		if o.Mode != mode || !o.Refused {
			continue
		}
		longest = max(longest, o.RetryAfter)
		list = append(list, Violation{
			Rule: o.Rule, Window: o.Window, Key: o.Key, Limit: o.Limit, Remaining: o.Remaining, RetryAfter: o.RetryAfter, Never: o.Never,
			policy: a.policy(), message: a.rule.Message,
		})
	}
	if c.never {
		longest = 0
	}
	return list, longest
}

// refusal returns the error of a refused call.
func (c *call) refusal() *TooManyRequestsError {
	e := &struct {
		TooManyRequestsError
		only [1]Violation // most refusals are by one rule; this saves them a second allocation
	}{TooManyRequestsError: TooManyRequestsError{Method: c.method, Never: c.never, Message: defaultMessage, hasher: c.limiter.hasher}}
	if e.Violations, e.RetryAfter = c.violations(e.only[:0], ModeEnforce); len(e.Violations) > 0 {
		e.Message = cmp.Or(e.longest().message, e.Message)
	}
	return &e.TooManyRequestsError
}

// fire calls the limiter's trigger for each rule that has reached its limit.
func (c *call) fire(ctx context.Context) {
	for i := range c.asked {
		a := &c.asked[i]
		if a.rule.Mode != ModeTrigger || a.part == nil {
			continue
		}
		if claim := a.claim(); claim.Fired > 0 {
			c.limiter.trigger(ctx, Trigger{
				Method: c.method, Rule: a.rule.shown, Key: key.Shown(a.subject), Limit: a.limit, Used: claim.Fired,
			})
		}
	}
}
