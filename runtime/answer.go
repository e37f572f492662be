package ratelimit

import (
	"cmp"
	"context"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// answer is what became of a whole call.
type answer struct {
	admitted bool
	taken    int64     // of an UpTo call: the permits taken from each rule
	at       time.Time // by the store's clock: of the admission, or else of the refusal
	source   Source
	failure  error         // of the store, if a policy decided
	waited   time.Duration // until the admission
}

// never reports whether the rule refuses every such call.
func (a *asked) never() bool {
	return a.part == nil && a.blockLeft == 0 || a.part != nil && a.claim().Wait == engine.Never
}

// refusedHere reports whether a rule refuses the call without its store being asked. Then no store is.
func (c *call) refusedHere() bool { return c.never || c.isBlocked }

// retry returns how long until the rule would admit the call: 0 if it would now, or never.
func (a *asked) retry() time.Duration {
	if a.part == nil || a.never() {
		return a.blockLeft
	}
	return max(0, time.Duration(a.claim().Earliest-a.part.verdict.Now)*time.Microsecond)
}

// outcome returns the answer of one rule, as errors, decisions and observers tell it.
func (c *call) outcome(a *asked) Outcome {
	o := Outcome{
		Rule: a.rule.shown, Window: a.rule.window, Key: key.Shown(a.subject), Mode: a.rule.Mode, Limit: a.limit, Cost: a.cost,
	}
	if a.part != nil {
		if c.refusedHere() || !a.claim().Refused { // in the first case the stores were not asked
			return o
		}
		o.Remaining = a.claim().Room
	}
	o.Refused, o.Never, o.RetryAfter = true, a.never(), a.retry()
	return o
}

// violations appends the refusals of the rules of a mode to a list. It also returns the longest delay.
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

// refusal returns the error of a call that is refused.
func (c *call) refusal() *TooManyRequestsError {
	e := &struct {
		TooManyRequestsError
		only [1]Violation // most refusals are of one rule, and cost one allocation
	}{TooManyRequestsError: TooManyRequestsError{Method: c.method, Never: c.never, Message: defaultMessage, hasher: c.limiter.hasher}}
	if e.Violations, e.RetryAfter = c.violations(e.only[:0], ModeEnforce); len(e.Violations) > 0 {
		e.Message = cmp.Or(e.longest().message, e.Message)
	}
	return &e.TooManyRequestsError
}

// fire calls the limiter's trigger for the rules whose limit is reached.
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
