package ratelimit

import (
	"context"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// pollPause is how often the first call that a pause holds asks whether the pause is over: another process may have ended it.
const pollPause = time.Second

// line returns the line of the call: that of its first rule with pauses, or else that of its first rule in enforce mode.
func (c *call) line() (line fleet.Count) {
	for i := range c.rulings {
		r := &c.rulings[i]
		if r.rule.Mode != ModeEnforce || line != (fleet.Count{}) && !r.rule.Pausable {
			continue
		}
		line = fleet.Count{Name: r.rule.Name, Tag: r.rule.tag, Subject: r.subject}
		if r.rule.Pausable {
			break
		}
	}
	return line
}

// awaitTurn holds the call while a pause holds earlier calls of its line. If the call is the first of these, awaitTurn sleeps until it asks.
func (c *call) awaitTurn(ctx context.Context) error {
	if lines := &c.limiter.waiting; c.spot == nil && !c.asked.Peek {
		if line := c.line(); lines.IsFree(line, nil) {
			return nil
		} else {
			c.spot, c.began = lines.EnterHolding(line), c.limiter.store.Time()
		}
	}
	for {
		holds, first := c.spot.Holds()
		if !holds {
			break
		}
		until := c.began.Add(c.longestWait())
		if first && c.asksAt.Before(until) {
			until = c.asksAt
		}
		left := until.Sub(c.limiter.store.Time())
		if left <= 0 {
			break
		}
		if _, err := c.sleep(ctx, c.spot, left.Microseconds()+1, false); err != nil {
			return err
		}
		if c.limiter.store.Time().Before(until) {
			c.asksAt = time.Time{} // it was woken: the pause may be over, or the calls before this one gone
		}
	}
	c.claimAgain()
	return nil
}

// awaitOrder holds a call whose place has come until the calls of its line with earlier places have gone. Only calls of rules with pauses do so:
// they have just asked once more, and the answers may come in any order.
func (c *call) awaitOrder(ctx context.Context) error {
	if !c.isPausable() {
		return nil
	}
	for c.spot.IsBehind() {
		if _, err := c.sleep(ctx, c.spot, pollPause.Microseconds(), true); err != nil {
			return joinErrors(err, c.giveBack(ctx))
		}
	}
	return nil
}

// isPausable reports whether a rule of the call is Pausable.
func (c *call) isPausable() bool {
	return slices.ContainsFunc(c.rulings, func(r ruling) bool { return r.rule.Pausable })
}

// longestWait returns how long the most patient rule may delay the call.
func (c *call) longestWait() (longest time.Duration) {
	for i := range c.rulings {
		longest = max(longest, c.rulings[i].wait)
	}
	return longest
}

// hold notes that a pause holds the call.
func (c *call) hold() {
	if c.spot == nil {
		c.spot = c.limiter.waiting.EnterHolding(c.line())
		return
	}
	c.spot.Hold()
}

// stand notes that the call sleeps until a place, or until it asks again.
func (c *call) stand() {
	if c.spot == nil {
		c.spot = c.limiter.waiting.Enter(c.line(), c.verdict.At)
		return
	}
	c.spot.Stand(c.verdict.At)
}

// isPaused reports whether a subject of the call is paused by now. Only the store knows the pauses of rules that are Pausable. A call whose
// place has come goes on if the store fails to say so.
func (c *call) isPaused(ctx context.Context) bool {
	peek := engine.Call{Prefix: c.asked.Prefix, Peek: true}
	for i := range c.rulings {
		r := &c.rulings[i]
		if !r.isAsked() || r.rule.Mode != ModeEnforce {
			continue
		}
		if c.limiter.pauseLeft(r.rule, r.subject) > 0 {
			return true
		}
		if r.rule.Pausable {
			peek.Claims = append(peek.Claims, *c.claim(r))
		}
	}
	if len(peek.Claims) == 0 {
		return false
	}
	_, err := c.limiter.decider.Decide(ctx, &peek)
	return err == nil && peek.PausedUntil() > 0
}

// pauseHere answers a call as a store would. A setting pauses one of its subjects.
func (c *call) pauseHere() {
	now, longest := c.limiter.store.Time().UnixMicro(), int64(0)
	for i := range c.rulings {
		r := &c.rulings[i]
		if !r.isAsked() {
			continue
		}
		claim, left := c.claim(r), r.pauseLeft.Microseconds()
		claim.Clear()
		if claim.Earliest = now + left; left > 0 {
			claim.Paused, claim.Full, claim.Refused = now+left, now+left, left > claim.Wait
		}
		longest = max(longest, left)
	}
	c.verdict = engine.Verdict{Now: now, At: now + longest}
}
