package decide

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// decideWithWaits asks the stores, and sleeps until the call's place. If no place can be kept for the call, decideWithWaits waits for the next
// moment at which the call may be admitted, and asks again. At that moment permits come back by time, a pause ends, or others release
// permits.
func (c *Call) decideWithWaits(ctx context.Context) error {
	defer func() { c.waiter.Leave() }() // the waiter may change until then, or be nil
	c.came = c.limiter.fleet.Lines.Arrive()
	for {
		if err := c.awaitTurn(ctx); err != nil {
			return err
		}
		err := c.askStores(ctx)
		if err != nil || c.verdict.At <= c.verdict.Now || c.Peek {
			return err
		}
		if goes, err := c.awaitNext(ctx); goes || err != nil {
			return err
		}
		c.refillClaims()
	}
}

// awaitNext lets a call that is not admitted now sleep, or puts it into the line in which it holds. goes says that the call may go on then.
// Otherwise it has to ask again.
func (c *Call) awaitNext(ctx context.Context) (goes bool, err error) {
	v, now := c.verdict, c.limiter.store.Time()
	if c.waitsSince.IsZero() {
		c.waitsSince = now
	}
	d := max(time.Duration(v.At-v.Now)*time.Microsecond, shortestSleep)
	switch paused := c.PausedUntil(); {
	case v.Admitted:
		return c.awaitPlace(ctx)
	case paused > 0:
		c.awaited = nil
		c.hold(now.Add(min(max(time.Duration(paused-v.Now)*time.Microsecond, shortestSleep), pollPause)))
	case c.awaited != nil:
		c.hold(now.Add(d))
	default:
		c.lineUp()
		_, err = c.sleep(ctx, d, false)
	}
	return false, err
}

// shortestSleep is the least time that a call sleeps before it asks again.
const shortestSleep = 100 * time.Microsecond

// refillClaims prepares the claims for the next decision, after the call has waited.
func (c *Call) refillClaims() {
	hasWaited := !c.waitsSince.IsZero()
	if hasWaited {
		c.waited, c.paused = c.limiter.store.Time().Sub(c.waitsSince), false
	}
	for i := range c.Asked {
		r := &c.Asked[i]
		r.restore(c.waited)
		if hasWaited && r.Rule.enforces() {
			r.pauseLeft = c.limiter.pauseLeft(r.Rule, r.Claim.Subject)
			c.paused = c.paused || r.pauseLeft > 0
		}
	}
}

// keepDeadline keeps the call from waiting beyond the deadline of ctx. If a rule has Distinct, the call does not wait at all: a member that
// costs nothing now may cost a permit after the wait. keepDeadline reports whether the call may still wait.
func (c *Call) keepDeadline(ctx context.Context) bool {
	hasMembers := slices.ContainsFunc(c.Asked, func(r Asked) bool { return r.Rule.Distinct != "" })
	deadline, ok := ctx.Deadline()
	if !ok && !hasMembers {
		return true
	}
	left := time.Duration(0)
	if !hasMembers {
		left = max(left, time.Until(deadline))
	}
	for i := range c.Asked {
		c.Asked[i].wait = min(c.Asked[i].wait, left)
	}
	c.refillClaims()
	return left > 0
}

// awaitPlace sleeps until the place of a call that is admitted. If a pause has begun by then, the call gives its place back and has to ask
// again. If ctx ends first, or the store fails to say whether there is a pause, it gives its place back, too.
func (c *Call) awaitPlace(ctx context.Context) (goes bool, err error) {
	wait := time.Duration(c.verdict.At-c.verdict.Now) * time.Microsecond
	c.waited += wait
	c.lineUp()
	for due := c.limiter.store.Time().Add(wait); ; {
		woken, err := c.sleep(ctx, due.Sub(c.limiter.store.Time()), true)
		if err != nil {
			return false, printable.Join(err, c.giveBack(ctx))
		}
		isDue, heldBefore := !woken || !c.limiter.store.Time().Before(due), c.othersHold()
		switch paused, err := c.isPaused(ctx); {
		case err != nil:
			_ = c.giveBack(ctx) // it fails for the same reason
			return false, err
		case paused:
			c.hold(time.Time{})
			_ = c.giveBack(ctx) // the call goes on waiting, even if its old place stays charged
			return false, nil
		case isDue:
			err := c.awaitOrder(ctx)
			if heldBefore || err != nil || !c.othersHold() { // otherwise an earlier call found a pause after this one had asked
				return true, err
			}
		}
	}
}

// giveBack gives back the place of a call.
func (c *Call) giveBack(ctx context.Context) error {
	back, cancel := afterCall(ctx)
	defer cancel()
	c.Undo()
	failed := c.limiter.decider.Adjust(back, &c.Call)
	c.Rollback = false
	c.ClearDeltas()
	if back.Err() != nil {
		return nil // the store still gives the place back; a timeout here would look like a deadline of ctx
	}
	return failed
}

// sleep waits for d, or until the call is woken in its line. woken says that it was woken. If ctx ends first, sleep returns an error.
func (c *Call) sleep(ctx context.Context, d time.Duration, placed bool) (woken bool, err error) {
	if d <= 0 {
		return false, nil
	}
	until := c.limiter.store.Time().Add(d)
	nap, awake := c.waiter.Nap(ctx)
	c.limiter.store.Sleep(nap, d, placed)
	woken = awake()
	if ctx.Err() == nil || !c.limiter.store.Time().Before(until) { // a sleep that ends right at the deadline counts
		return woken, nil
	}
	c.abandoned = true
	return woken, ContextError(ctx, c.Method())
}

// grace bounds how long a call that is over waits until its permits are given back or settled. A store has a timeout of its own, which is
// usually shorter.
const grace = time.Second

// afterCall returns a context for giving permits back or settling them, even if ctx has ended: perhaps the call is over because it did.
func afterCall(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), grace)
}

func ContextError(ctx context.Context, method string) error {
	if method != "" {
		method += ": "
	}
	return fmt.Errorf("%srate limit: %w", method, ended(ctx))
}

// ended returns why a context has ended, or nil. A connection of a store has the deadline of the context, too, and may notice it first.
func ended(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if err := ctx.Err(); err != nil || !ok || time.Now().Before(deadline) {
		return err
	}
	return context.DeadlineExceeded
}

// StoreError turns an error of the store into the error of the call. That is the context's error if the context has ended, and otherwise a
// *ratelimit.RuleError or a *ratelimit.StoreError.
func (l *Limiter) StoreError(ctx context.Context, method string, err error) error {
	if err == nil {
		return nil
	}
	if ended(ctx) != nil {
		return ContextError(ctx, method)
	}
	return l.public.StoreError(method, err)
}

// restore sets in the claim what the call asks, which a failure policy may have changed. waited is how long the call has waited. The claim gets
// the rest of the rule's wait.
func (a *Asked) restore(waited time.Duration) {
	claim := a.Claim
	claim.Limit, claim.Burst = a.Limit, a.Rule.Capacity(a.Limit)
	if claim.Wait == engine.NeverFits {
		return
	}
	claim.Cost, claim.Wait = a.Cost, 0
	if claim.Mode == engine.Trigger {
		claim.Cost = min(a.Cost, 2*engine.MaxLimit)
	}
	if a.wait > waited {
		claim.Wait = a.Rule.delay(a.wait-waited, a.Limit)
	}
}
