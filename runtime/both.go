package ratelimit

import (
	"context"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// A call may have rules of the fleet and rules of this instance. Each of the two stores decides its own rules. The stores cannot agree on an
// instant for which both keep a place, so a call that may wait sleeps and asks both again.

// isSplit reports whether the call has rules in both stores.
func (c *call) isSplit() bool { return len(c.local.Claims) > 0 && len(c.fleet.Claims) > 0 }

// askBoth asks this instance's store, and then the fleet's. If one of them does not admit the call now, askBoth gives back what the other
// charged, and the verdict says when both would admit the call.
func (c *call) askBoth(ctx context.Context) (v engine.Verdict, again bool, err error) {
	c.local.Refused, c.fleet.Refused = false, false
	if err := c.askPart(ctx, &c.local); err != nil {
		return v, false, err
	}
	c.fleet.Refused = !c.local.admitsNow()
	if taken := c.local.verdict.Taken; taken > 0 {
		for i := range c.fleet.Claims {
			c.fleet.Claims[i].Cost = taken
		}
	}
	if err := c.askPart(ctx, &c.fleet); err != nil {
		return v, false, joinErrors(err, c.rollBack(ctx, &c.local))
	}
	v.Now = max(c.fleet.verdict.Now, c.local.verdict.Now)
	v.At = v.Now
	if c.local.admitsNow() && c.fleet.admitsNow() {
		v.Admitted, v.Taken = true, c.fleet.verdict.Taken
		return v, false, c.level(ctx, v.Taken)
	}
	delay, again := c.delay()
	v.At += delay
	return v, again, joinErrors(c.rollBack(ctx, &c.fleet), c.rollBack(ctx, &c.local))
}

// admitsNow reports whether the store admits the call without a wait.
func (p *part) admitsNow() bool {
	return p.verdict.Admitted && (p.verdict.At == p.verdict.Now || p.Peek)
}

// delay returns after how many microseconds both stores would admit the call, and whether the rules let the call wait that long.
func (c *call) delay() (delay int64, inTime bool) {
	inTime = true
	for i := range c.asked {
		a := &c.asked[i]
		if a.part == nil || a.rule.Mode != ModeEnforce {
			continue
		}
		claim, retry := a.claim(), a.retry()
		if claim.Rule.Block == 0 {
			claim.Refused = claim.Refused && retry.Microseconds() > c.waitLeft(a)
		}
		inTime = inTime && !claim.Refused
		delay = max(delay, retry.Microseconds(), a.part.verdict.At-a.part.verdict.Now)
	}
	return delay, inTime
}

// level is for UpTo calls. If this instance's rules were charged more than taken, the permits that the fleet's rules gave, it gives back
// the rest.
func (c *call) level(ctx context.Context, taken int64) error {
	excess := c.local.verdict.Taken - taken
	if excess <= 0 {
		return nil
	}
	for i := range c.local.Claims {
		if claim := &c.local.Claims[i]; claim.Charged > 0 {
			claim.Delta = -excess
		}
	}
	if err := c.local.store.Adjust(ctx, &c.local.Call); err != nil {
		return err
	}
	for i := range c.local.Claims {
		if claim := &c.local.Claims[i]; claim.Charged > 0 {
			claim.Charged, claim.Room = taken, claim.Room+excess
		}
	}
	return nil
}
