package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// outcome is the answer to a whole call.
type outcome struct {
	admitted bool
	wait     time.Duration // until the admission
	at       int64         // the store's time: of the admission, or else of the refusal
}

// decide asks the stores. Nothing to ask about is admitted.
func (c *call) decide(ctx context.Context) (outcome, error) {
	if ctx.Err() != nil {
		return outcome{}, storeError(ctx, c.method, ctx.Err())
	}
	if err := c.fits(); err != nil {
		return outcome{}, err
	}
	c.limitWaits(ctx)
	last, err := &c.fleet, error(nil)
	switch {
	case len(c.local.Claims) == 0 && len(c.fleet.Claims) == 0:
		return outcome{admitted: true, at: time.Now().UnixMicro()}, nil
	case len(c.local.Claims) == 0:
		err = c.decideFleet(ctx)
	case len(c.fleet.Claims) == 0:
		err = c.local.decide(ctx)
		last = &c.local
	default:
		last, err = c.decideBoth(ctx)
	}
	if err != nil {
		return outcome{}, storeError(ctx, c.method, err)
	}
	v := last.verdict
	if !v.Admitted {
		v.At = v.Now
	}
	return outcome{v.Admitted, time.Duration(v.At-v.Now) * time.Microsecond, v.At}, nil
}

func (p *part) decide(ctx context.Context) (err error) {
	p.verdict, err = p.store.Decide(ctx, &p.Call)
	if err == nil && !p.verdict.Admitted && !p.Refused && !p.refuses() {
		return errNoRule
	}
	return err
}

var errNoRule = errors.New("the call is refused, but by no rule: a state is damaged")

func (p *part) wait() time.Duration {
	return time.Duration(p.verdict.At-p.verdict.Now) * time.Microsecond
}

// giveBack returns what the part was charged, also if ctx ends meanwhile.
func (p *part) giveBack(ctx context.Context) error { return p.store.Return(ctx, &p.Call) }

// undo is giveBack for a call that is not made.
func (p *part) undo(ctx context.Context) error {
	p.Undo = true
	defer func() { p.Undo = false }()
	return p.giveBack(ctx)
}

// maxMoves bounds how often the parts of a call are asked for each other's places.
const maxMoves = 20

// decideBoth decides the rules of this instance and those of the fleet: all or none, at one instant. This instance says first
// when it would admit the call. Then each part is asked for the place of the other one. If it finds a later one, since calls
// were made meanwhile, it keeps that, and the other part moves. The part that is returned is the one whose answer is the call's.
func (c *call) decideBoth(ctx context.Context) (*part, error) {
	c.local.Refused = true // until the fleet has decided
	began := time.Now()
	if err := c.local.decide(ctx); err != nil {
		return nil, err
	}
	if c.local.refuses() {
		c.askFleet(ctx)
		return &c.local, nil
	}
	c.local.Refused = false
	c.fleet.After = c.local.verdict.At - c.local.verdict.Now
	if err := c.decideFleet(ctx); err != nil || !c.fleet.verdict.Admitted || c.fleet.Peek {
		return &c.fleet, err
	}
	c.fleet.After = 0
	// The fleet's clock is ahead of this instance's by this, or at most by the time that the answers took more.
	ahead := c.fleet.verdict.Now - c.local.verdict.Now
	ahead = max(ahead-time.Since(began).Microseconds()-1, min(ahead, 0))

	for range maxMoves {
		last, err := c.follow(ctx, &c.local, &c.fleet, -ahead)
		if last != nil || err != nil {
			return last, err
		}
		if last, err = c.follow(ctx, &c.fleet, &c.local, ahead); last != nil || err != nil {
			return last, err
		}
	}
	return c.contend(), c.fleet.undo(ctx)
}

// follow asks part p for the place of the part that is held, by a clock that is so far ahead of that one's. It returns nil if p
// has a later place, which it holds now instead.
func (c *call) follow(ctx context.Context, p, held *part, ahead int64) (*part, error) {
	p.From = held.verdict.At + ahead
	decided := c.decideFleet
	if p == &c.local {
		decided = p.decide
	}
	if err := decided(ctx); err != nil || !p.verdict.Admitted {
		return p, errors.Join(err, held.undo(ctx))
	}
	if p.wait() <= 0 || p.verdict.At == p.From {
		return p, nil
	}
	return nil, held.undo(ctx)
}

// contend refuses the call, whose parts find no common place.
func (c *call) contend() *part {
	last := &c.fleet
	for _, p := range []*part{&c.fleet, &c.local} {
		if p.Contend(p.verdict.Now, p.verdict.At) {
			last = p
		}
	}
	last.verdict.Admitted = false
	return last
}

// refuses reports whether a rule of the part refuses the call.
func (p *part) refuses() bool {
	return slices.ContainsFunc(p.Claims, func(c decide.Claim) bool {
		return c.Mode == decide.Enforce && c.Refused(p.verdict.Now)
	})
}

// askFleet finds out which rules of the fleet refuse as well. If they cannot be asked, the refusal stands without them.
func (c *call) askFleet(ctx context.Context) {
	c.fleet.Refused = true
	if c.fleet.decide(ctx) == nil {
		return
	}
	c.fleet.verdict = c.local.verdict
	for i := range c.fleet.Claims {
		c.fleet.Claims[i].Earliest = 0
	}
}

// decideFleet asks the store that is shared, or follows the policy if that fails.
func (c *call) decideFleet(ctx context.Context) error {
	err := c.fleet.decide(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if unfit := c.fits(); unfit != nil {
		return unfit // as the store knows only now: no failure that passes, so that no policy applies
	}
	switch c.policy() {
	case FailLocal:
		c.fleet.store = c.limiter.local
		return c.fleet.decide(ctx)
	case FailOpen:
		c.fleet.store = nothing{}
		return c.fleet.decide(ctx)
	default:
		return err
	}
}

// policy is the strictest one among the rules of the fleet.
func (c *call) policy() FailurePolicy {
	policy := FailOpen
	for _, a := range c.asked {
		if a.part != &c.fleet {
			continue
		}
		p := a.rule.OnError
		if p == DefaultPolicy {
			p = c.limiter.policy
		}
		switch p {
		case FailOpen:
		case FailLocal:
			policy = FailLocal
		default:
			return FailClosed
		}
	}
	return policy
}

// nothing is the store of what is not counted.
type nothing struct{ decide.Store }

func (nothing) Decide(_ context.Context, call *decide.Call) (decide.Verdict, error) {
	for i := range call.Claims {
		c := &call.Claims[i]
		c.Charged, c.Earliest, c.Fired = false, 0, 0
	}
	now := time.Now().UnixMicro()
	return decide.Verdict{Now: now, At: max(now+call.After, call.From), Admitted: true}, nil
}

func (nothing) Return(context.Context, *decide.Call) error { return nil }

// limitWaits keeps the call from waiting beyond the deadline of ctx, and at all if it counts members: of those, who is
// known now need not be known at a later place.
func (c *call) limitWaits(ctx context.Context) {
	deadline, ok := ctx.Deadline()
	counts := slices.ContainsFunc(c.asked, func(a asked) bool { return a.part != nil && a.rule.Distinct != "" })
	if !ok && !counts {
		return
	}
	left := int64(0)
	if !counts {
		left = max(left, time.Until(deadline).Microseconds())
	}
	for _, p := range []*part{&c.fleet, &c.local} {
		for i := range p.Claims {
			p.Claims[i].Wait = min(p.Claims[i].Wait, left)
		}
	}
}

// sleep waits until the call's place. If ctx ends before, the place is given back.
func (c *call) sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	until := time.Now().Add(wait)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		if !time.Now().Before(until) { // the place was at the deadline, which is not too late
			return nil
		}
		err := fmt.Errorf("%s: %w", where(c.method, "rate limit"), ctx.Err())
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		failed := c.giveBack(back)
		if back.Err() != nil {
			failed = nil // it is still going on, and would look like a deadline of ctx
		}
		return errors.Join(err, failed)
	}
}

// grace bounds how long a call whose context ended waits until its place is given back, which goes on in any case.
const grace = 50 * time.Millisecond

// giveBack returns all that the call was charged.
func (c *call) giveBack(ctx context.Context) error {
	var failed error
	for _, p := range []*part{&c.fleet, &c.local} {
		if len(p.Claims) > 0 {
			failed = errors.Join(failed, p.giveBack(ctx))
		}
	}
	return failed
}

// storeError tells a store that failed from a context that ended meanwhile.
func storeError(ctx context.Context, method string, err error) error {
	var unfit *RuleError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", where(method, "rate limit"), ctx.Err())
	case errors.As(err, &unfit):
		return unfit
	default:
		return &StoreError{Method: method, Err: err}
	}
}
