package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// decideInTime asks the stores, and sleeps until the call's place. If no place can be kept for the call, decideInTime sleeps until the call
// would be admitted, and asks again.
func (c *call) decideInTime(ctx context.Context) error {
	if c.waits {
		c.limitWaits(ctx)
	}
	if c.countsRunning {
		return c.decideInLine(ctx)
	}
	var began time.Time
	for {
		v, err := c.limiter.decider.Decide(ctx, &c.asked)
		c.verdict = v
		switch {
		case err != nil:
			return storeError(ctx, c.method, err)
		case v.Admitted && (v.At == v.Now || c.asked.Peek):
			return nil
		case v.Admitted:
			return c.awaitPlace(ctx)
		case c.asked.Peek || !c.asked.AskAgain(v):
			c.noteHold()
			return nil
		}
		if began.IsZero() {
			began = c.limiter.store.Time()
		}
		if err := c.sleep(ctx, max(v.At-v.Now, shortestSleep), false); err != nil {
			return err
		}
		c.waited = c.limiter.store.Time().Sub(began)
		c.claimAgain()
	}
}

// shortestSleep is the least time that a call sleeps before it asks again, in microseconds.
const shortestSleep = 100

// claimAgain prepares the claims for being decided again, after the call has waited.
func (c *call) claimAgain() {
	for i := range c.rulings {
		if r := &c.rulings[i]; r.isAsked() {
			r.fill(c.claim(r), c.waited)
		}
	}
}

// limitWaits keeps the call from waiting beyond the deadline of ctx. If a rule has Distinct, the call does not wait at all: a member that
// is known now may have left the window by then.
func (c *call) limitWaits(ctx context.Context) {
	counts := slices.ContainsFunc(c.rulings, func(r ruling) bool { return r.rule.Distinct != "" })
	deadline, ok := ctx.Deadline()
	if !ok && !counts {
		return
	}
	left := time.Duration(0)
	if !counts {
		left = max(left, time.Until(deadline))
	}
	for i := range c.rulings {
		c.rulings[i].wait = min(c.rulings[i].wait, left)
	}
	c.claimAgain()
}

// awaitPlace sleeps until the place of a call that is admitted later. If ctx ends first, it gives the place back.
func (c *call) awaitPlace(ctx context.Context) error {
	wait := c.verdict.At - c.verdict.Now
	c.waited += time.Duration(wait) * time.Microsecond
	err := c.sleep(ctx, wait, true)
	if err == nil {
		return nil
	}
	back, cancel := afterCall(ctx)
	defer cancel()
	for i := range c.asked.Claims {
		c.asked.Claims[i].Delta = -c.asked.Claims[i].Charged
	}
	c.asked.Rollback = true
	failed := c.limiter.decider.Adjust(back, &c.asked)
	if back.Err() != nil {
		failed = nil // the store still gives the place back; a timeout here would look like a deadline of ctx
	}
	return joinErrors(err, failed)
}

// sleep waits for us microseconds. It returns an error if ctx ends first.
func (c *call) sleep(ctx context.Context, us int64, placed bool) error {
	if us <= 0 {
		return nil
	}
	d := time.Duration(us) * time.Microsecond
	until := c.limiter.store.Time().Add(d)
	c.limiter.store.Sleep(ctx, d, placed)
	if ctx.Err() == nil || !c.limiter.store.Time().Before(until) { // a sleep that ends right at the deadline counts
		return nil
	}
	c.abandoned = true
	return contextError(ctx, c.method)
}

// grace bounds how long a call that is over waits until its permits are given back or settled. A store has a timeout of its own, which is usually
// shorter.
const grace = time.Second

// afterCall returns a context for giving permits back or settling them, even if ctx has ended: perhaps the call is over because it did.
func afterCall(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), grace)
}

func contextError(ctx context.Context, method string) error {
	return fmt.Errorf("%s: %w", where(method, "rate limit"), ctx.Err())
}

// storeError turns an error of the store into the error of the call. That is the context's error if the context has ended, and otherwise a
// *RuleError or a *StoreError.
func storeError(ctx context.Context, method string, err error) error {
	var unfit *RuleError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return contextError(ctx, method)
	case errors.As(err, &unfit):
		return unfit
	default:
		return &StoreError{Method: method, Err: err}
	}
}
