package decide

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/line"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// decideWithWaits asks the stores until the call is refused, or is admitted and its place has come. In between it waits as its state says. With a
// place it sleeps until then. Of the calls of a line that a pause or running calls hold, only the first asks again, and what comes back in this
// process wakes it. A call for which no place can be kept sleeps until the time that it was told, and asks for itself.
func (c *Call) decideWithWaits(ctx context.Context) (err error) {
	waiting.Arrive(&c.waiter)
	defer waiting.Leave(&c.waiter)
	admitted := false
	for c.standBehind(); ; c.lineUp() {
		switch c.waiter.State {
		case line.Placed:
			admitted, err = c.awaitPlace(ctx)
		case line.HeldByPause, line.HeldByRunning:
			err = c.awaitTurn(ctx)
		case line.Asks:
			if !c.until.IsZero() { // zero if the call has just come
				_, err = c.sleep(ctx, c.until)
			}
		}
		if admitted || err != nil {
			return err
		}
		c.until = time.Time{} // it asks now
		if err = c.renew(ctx); err != nil || c.decideHere() {
			return err
		}
		if err = c.askStores(ctx); err != nil || c.verdict.At <= c.verdict.Now {
			return err
		}
	}
}

// lineUp puts the call into the state that the answer of the stores asks for.
func (c *Call) lineUp() {
	v, now := c.verdict, c.limiter.store.Time()
	if c.waitsSince.IsZero() {
		c.waitsSince = now
	}
	left := time.Duration(v.At-v.Now) * time.Microsecond
	state, count := line.Asks, c.countOf(c.ownRule())
	switch paused := c.PausedUntil(); {
	case v.Admitted:
		state = line.Placed
		c.waited += left
	case paused > 0:
		state, count = line.HeldByPause, c.lineOfPause()
		left = min(time.Duration(paused-v.Now)*time.Microsecond, pollPause)
	case c.awaited != nil:
		state, count = line.HeldByRunning, c.limiter.released(c.awaited.Rule, c.awaited.Claim.Subject)
		if count != c.waiter.Count { // permits may have been released before the call enters
			left = 0
		}
	}
	if state != line.Placed {
		left = max(left, shortestSleep)
	}
	c.until = now.Add(left)
	c.put(state, count)
}

// shortestSleep is the least time that a call sleeps before it asks again.
const shortestSleep = 100 * time.Microsecond

// renew has the claims ask again, if the call has waited.
func (c *Call) renew(ctx context.Context) error {
	if c.waitsSince.IsZero() {
		return nil
	}
	c.waited, c.paused = c.limiter.store.Time().Sub(c.waitsSince), false
	for i := range c.Asked {
		r := &c.Asked[i]
		r.setAsk(c.waited)
		if r.Rule.enforces() {
			r.pauseLeft = c.limiter.pauseLeft(r)
			c.paused = c.paused || r.pauseLeft > 0
		}
	}
	return c.bar(ctx)
}

// keepDeadline keeps the call from waiting beyond the deadline of ctx. If a rule has Distinct, the call does not wait at all: a member that
// costs nothing now may cost a permit after the wait. That does not matter to a call that reserves, because it is decided once. keepDeadline
// reports whether the call may still wait.
func (c *Call) keepDeadline(ctx context.Context) bool {
	left := time.Duration(math.MaxInt64)
	if deadline, ok := ctx.Deadline(); ok {
		left = max(0, time.Until(deadline))
	}
	if !c.Reserves && slices.ContainsFunc(c.Asked, func(r Asked) bool { return r.Rule.Distinct != "" }) {
		left = 0
	}
	for _, rules := range [...][]Asked{c.Asked, c.unlimited} {
		for i := range rules {
			if r := &rules[i]; r.wait > left {
				r.wait = left
				r.setAsk(0)
			}
		}
	}
	return left > 0
}

// awaitPlace sleeps until the place of a call that is admitted. If a pause has begun by then, the call gives its place back, and holds until it may
// ask again. If ctx ends first, or the store fails to say whether there is a pause, it gives its place back, too.
func (c *Call) awaitPlace(ctx context.Context) (admitted bool, err error) {
	for {
		woken, err := c.sleep(ctx, c.until)
		if err != nil {
			return false, printable.Join(err, c.giveBack(ctx))
		}
		isDue, heldBefore := !woken || !c.limiter.store.Time().Before(c.until), c.othersHold()
		switch paused, err := c.isPaused(ctx); {
		case err != nil:
			_ = c.giveBack(ctx) // it fails for the same reason
			return false, err
		case paused:
			c.until = time.Time{}
			c.put(line.HeldByPause, c.lineOfPause())
			_ = c.giveBack(ctx) // the call goes on waiting, even if its old place stays charged
			return false, c.awaitTurn(ctx)
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
	failed := c.Adjust(back)
	c.Rollback = false
	c.ClearDeltas()
	if back.Err() != nil {
		return nil // the store still gives the place back; a timeout here would look like a deadline of ctx
	}
	return failed
}

// sleep sleeps until a time, or until the call is woken in its line; woken says that it was. If ctx ends first, sleep returns an error.
func (c *Call) sleep(ctx context.Context, until time.Time) (woken bool, err error) {
	store := c.limiter.store
	left := until.Sub(store.Time())
	if left <= 0 {
		return false, nil
	}
	woken = waiting.Sleep(ctx, &c.waiter, func(nap context.Context) { store.Sleep(nap, left, c.waiter.State == line.Placed) })
	if ctx.Err() == nil || !store.Time().Before(until) { // a sleep that ends right at the deadline counts
		return woken, nil
	}
	return woken, c.abandon(ctx)
}

// abandon returns the error of a call whose context has ended while it waited.
func (c *Call) abandon(ctx context.Context) error {
	c.abandoned = true
	return ContextError(ctx, c.Method())
}

// Grace bounds how long a call that is over waits until its permits are given back or settled. A store has a timeout of its own, which is
// usually shorter. Tests set it, if they ask what was given back and the machine may be busy.
var Grace = time.Second

// afterCall returns a context for giving permits back or settling them, even if ctx has ended: perhaps the call is over because it did.
func afterCall(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), Grace)
}

// ContextError returns the error of a call whose context has ended. It wraps the context's error.
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
