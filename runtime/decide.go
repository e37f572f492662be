package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Source is what decided a call.
type Source uint8

const (
	SourceStore  Source = iota // the limiter's store
	SourceMemory               // this process, which remembers a refusal
	SourceLease                // this process, with permits that it took ahead
	SourcePolicy               // a FailurePolicy, because the store failed
	SourceBlock                // a block that [Limiter.Block] set; a refusal by the Block of a rule has another source
)

// String returns "store", "memory", "lease", "policy" or "block".
func (s Source) String() string {
	return word("Source", uint8(s), "store", "memory", "lease", "policy", "block")
}

// run decides the call, and sleeps if the call has to wait. It decides all calls except simple ones.
func (c *call) run(ctx context.Context) error {
	observed := c.limiter.observed() && !c.peek
	var began time.Duration
	if observed {
		began = c.limiter.elapsed()
	}
	report := reportOf(ctx)
	c.reports = c.peek || report != nil
	if c.err == nil {
		c.err = c.decide(ctx)
	}
	if c.err == nil && report != nil && !c.peek {
		report.add(c.quotas())
	}
	if c.err == nil && c.answer.admitted && c.limiter.trigger != nil && !c.peek {
		c.fire(ctx)
	}
	if observed {
		c.observe(ctx, c.limiter.elapsed()-began)
	}
	return c.err
}

// decide asks the stores. A call without rules is admitted.
func (c *call) decide(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return contextError(ctx, c.method)
	case c.refusedHere():
		c.answer.at = c.limiter.now()
		if c.isBlocked {
			c.answer.source = SourceBlock
		}
		c.tellRefusal()
		return nil
	case len(c.local.Claims) == 0 && len(c.fleet.Claims) == 0:
		c.answer.admitted, c.answer.at = true, c.limiter.now()
		return nil
	}
	c.limitWaits(ctx)
	return c.decideInTime(ctx)
}

// tellRefusal tells the store about a call that was refused without asking it.
func (c *call) tellRefusal() {
	if c.limiter.witness == nil || c.peek {
		return
	}
	told := engine.Call{Prefix: c.limiter.prefix, Refused: true}
	for i := range c.asked {
		if a := &c.asked[i]; a.rule.Scope == ScopeFleet {
			claim := a.rule.claim
			claim.Subject, claim.Refused = a.subject, a.part == nil
			told.Claims = append(told.Claims, claim)
		}
	}
	c.limiter.witness.Witness(&told)
}

// decideInTime asks the stores, and sleeps until the call's place. If no place can be kept for the call, decideInTime sleeps until the call
// would be admitted, and asks again.
func (c *call) decideInTime(ctx context.Context) error {
	var began time.Time
	for {
		c.tellWaits()
		v, again, err := c.askStores(ctx)
		switch {
		case err != nil:
			return storeError(ctx, c.method, err)
		case !again || c.peek:
			return c.conclude(ctx, v)
		}
		if began.IsZero() {
			began = c.limiter.now()
		}
		if err := c.sleep(ctx, max(v.At-v.Now, shortestSleep), false); err != nil {
			return err
		}
		c.answer.waited = c.limiter.now().Sub(began)
	}
}

// shortestSleep is the least time that a call sleeps before it asks again, in microseconds.
const shortestSleep = 100

// conclude records the last verdict, and sleeps until the call's place.
func (c *call) conclude(ctx context.Context, v engine.Verdict) error {
	if !v.Admitted {
		c.answer.at = time.UnixMicro(v.Now)
		return nil
	}
	c.answer.admitted, c.answer.taken, c.answer.at = true, v.Taken, time.UnixMicro(v.At)
	if c.peek {
		return nil
	}
	c.answer.waited += time.Duration(v.At-v.Now) * time.Microsecond
	return c.sleepInPlace(ctx, v.At-v.Now)
}

// tellWaits sets in each claim how long it may still delay the call. If the call is split, the stores cannot keep a place for the same
// instant, so a claim that would have to wait is refused. A rule with a Block keeps its wait, because a refusal would begin the block.
func (c *call) tellWaits() {
	for i := range c.asked {
		a := &c.asked[i]
		if a.part == nil || a.claim().Wait == engine.Never {
			continue
		}
		claim := a.claim()
		if claim.Wait = c.waitLeft(a); c.isSplit() && claim.Rule.Block == 0 {
			claim.Wait = 0
		}
	}
}

// waitLeft returns how long the rule may still delay the call, in microseconds.
func (c *call) waitLeft(a *asked) int64 { return a.rule.delay(max(0, a.wait-c.answer.waited), a.limit) }

// askStores returns the verdict of all stores on the call, and whether to ask again at the time of the verdict.
func (c *call) askStores(ctx context.Context) (v engine.Verdict, again bool, err error) {
	p := &c.fleet
	switch {
	case c.isSplit():
		return c.askBoth(ctx)
	case len(c.fleet.Claims) == 0:
		p = &c.local
	}
	err = c.askPart(ctx, p)
	return p.verdict, p.AskAgain(p.verdict), err
}

// rollBack gives back what a part was charged, because the call is not made.
func (c *call) rollBack(ctx context.Context, p *part) error {
	if !p.verdict.Admitted || p.Peek {
		return nil
	}
	for i := range p.Claims {
		p.Claims[i].Delta = -p.Claims[i].Charged
	}
	p.Rollback = true
	defer func() { p.Rollback = false }()
	return p.store.Adjust(ctx, &p.Call)
}

// askPart asks the store of a part. If the fleet's store fails, the failure policy of the rules decides.
func (c *call) askPart(ctx context.Context, p *part) error {
	p.Peek, p.Report, p.UpTo = c.peek, c.reports || c.needsRoom, c.upTo
	v, err := p.store.Decide(ctx, &p.Call)
	p.verdict = v
	if p == &c.local || p.store != c.limiter.store {
		return err
	}
	c.answer.source = SourceStore
	_, unreadable := errors.AsType[*engine.StateError](err)
	_, unfit := errors.AsType[*RuleError](err)
	works := unreadable || unfit // the store answered: no failure policy applies
	switch {
	case v.Remembered:
		c.answer.source = SourceMemory // says nothing about the store
	case v.Leased:
		c.answer.source = SourceLease // nor does a lease
	case ctx.Err() == nil && !works:
		c.limiter.noteStore(ctx, err)
	}
	if err == nil || works || ctx.Err() != nil {
		return err
	}
	return c.followPolicy(ctx, err)
}

// limitWaits keeps the call from waiting beyond the deadline of ctx. If a rule has Distinct, the call does not wait at all: a member that
// is known now may have left the window by then.
func (c *call) limitWaits(ctx context.Context) {
	longest, counts := time.Duration(0), false
	for i := range c.asked {
		a := &c.asked[i]
		longest, counts = max(longest, a.wait), counts || a.rule.Distinct != ""
	}
	deadline, ok := ctx.Deadline()
	if longest == 0 || !ok && !counts {
		return
	}
	left := time.Duration(0)
	if !counts {
		left = max(left, time.Until(deadline))
	}
	for i := range c.asked {
		c.asked[i].wait = min(c.asked[i].wait, left)
	}
}

// sleepInPlace sleeps until the call's place, which is wait microseconds from now. If ctx ends first, it gives the place back.
func (c *call) sleepInPlace(ctx context.Context, wait int64) error {
	err := c.sleep(ctx, wait, true)
	if err == nil {
		return nil
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	failed := joinErrors(c.rollBack(back, &c.fleet), c.rollBack(back, &c.local))
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
	until := c.limiter.now().Add(d)
	c.limiter.sleep(ctx, d, placed)
	if ctx.Err() == nil || !c.limiter.now().Before(until) { // a sleep that ends right at the deadline counts
		return nil
	}
	c.abandoned = true
	return contextError(ctx, c.method)
}

// sleep waits for d, or until ctx ends.
func (l *Limiter) sleep(ctx context.Context, d time.Duration, placed bool) {
	if l.sleeper != nil {
		l.sleeper.Sleep(ctx, d, placed)
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// grace bounds how long a store tries again and again to give permits back or to settle them when a call is over. A store that does so in one
// command, such as package redisstore, goes by its own timeout instead.
const grace = 50 * time.Millisecond

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
