package ratelimit

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Calls of this process that wait are in lines. A call that sleeps until a time, or that a pause holds, is in the line of one of its rules. A call
// that waits for others to release permits is in the line of these permits, because nobody knows when they come back. A release in this process
// wakes the first call there. This call also asks now and then for what was released elsewhere.

// pollPause is how often the first call that a pause holds asks whether the pause is over: another process may have ended it.
const pollPause = time.Second

// line returns the line of the call: that of its first rule with pauses, or else that of its first rule in enforce mode.
func (c *call) line() (line fleet.Count) {
	for i := range c.rulings {
		r := &c.rulings[i]
		if r.rule.Mode != ModeEnforce || line != (fleet.Count{}) && !r.rule.Pausable {
			continue
		}
		if line = r.count(); r.rule.Pausable {
			break
		}
	}
	return line
}

// count identifies what the rule counts for the subject of the call.
func (r *ruling) count() fleet.Count {
	return fleet.Count{Name: r.rule.Name, Tag: r.rule.tag, Subject: r.subject}
}

// counts returns what all rules of the call count.
func (c *call) counts() []fleet.Count {
	counts := make([]fleet.Count, len(c.rulings))
	for i := range c.rulings {
		counts[i] = c.rulings[i].count()
	}
	return counts
}

// released returns the line of the calls that wait for the permits of a count to be released.
func (l *Limiter) released(rule *engine.Rule, subject string) (*fleet.Lines, fleet.Count) {
	lines := &l.fleet.Lines
	if rule.Instance {
		lines = &l.lines
	}
	return lines, fleet.Count{Name: rule.Name, Tag: rule.Tag, Subject: subject}
}

// pausedLine returns the line in which a pause holds the call. That is its own, unless only other rules are paused: calls that have its first
// rule in common with it, but not the paused one, go on.
func (c *call) pausedLine() (line fleet.Count) {
	own := c.line()
	for i := range c.rulings {
		r := &c.rulings[i]
		if r.isAsked() && r.rule.Mode == ModeEnforce && c.claim(r).Paused > 0 && (line == (fleet.Count{}) || r.count() == own) {
			line = r.count()
		}
	}
	return cmp.Or(line, own)
}

// lineBefore returns the line of a rule of the call in which a pause holds others, if there is one.
func (c *call) lineBefore() (line fleet.Count, found bool) {
	for i := range c.rulings {
		r := &c.rulings[i]
		if r.rule.Mode == ModeEnforce && !c.limiter.waiting.IsFree(r.count(), nil) {
			return r.count(), true
		}
	}
	return line, false
}

// hold keeps the call in the line of the permits that it waits for, or else in that of its pause, or puts the call there. If the call is the first
// that holds there, it asks again at a time, or when it is woken.
func (c *call) hold(at time.Time) {
	c.asksAt = at
	lines, count := &c.limiter.waiting, fleet.Count{}
	if c.full == nil {
		count = c.pausedLine()
	} else {
		lines, count = c.limiter.released(c.full.rule.numbers, c.full.subject)
	}
	if c.spot.IsIn(lines, count) {
		c.spot.Hold()
		return
	}
	left := c.spot
	c.spot = lines.EnterHolding(count, c.counts()) // before it leaves: so the next call of the other line finds this one before it
	left.Leave()
	if c.full != nil && lines.IsFree(count, c.spot) { // permits may have been released before the call entered
		c.asksAt = c.limiter.store.Time().Add(shortestSleep)
	}
}

// stand notes that the call sleeps until a place, or until it asks again.
func (c *call) stand() {
	lines, count := &c.limiter.waiting, c.line()
	if c.spot.IsIn(lines, count) {
		c.spot.Stand(c.verdict.At)
		return
	}
	left := c.spot
	c.spot = lines.Enter(count, c.counts(), c.verdict.At)
	left.Leave()
}

// awaitTurn holds the call while earlier calls of its line hold. If the call is the first of these, awaitTurn sleeps until it asks.
func (c *call) awaitTurn(ctx context.Context) error {
	if c.spot == nil && !c.asked.Peek {
		line, found := c.lineBefore()
		if !found {
			return nil
		}
		c.spot, c.began = c.limiter.waiting.EnterHolding(line, c.counts()), c.limiter.store.Time()
	}
	for {
		holds, first := c.spot.Holds()
		if !holds {
			break
		}
		until := c.began.Add(c.patience())
		if first && c.asksAt.Before(until) {
			until = c.asksAt
		}
		left := until.Sub(c.limiter.store.Time())
		if left <= 0 {
			break
		}
		if _, err := c.sleep(ctx, left, false); err != nil {
			return err
		}
		if c.limiter.store.Time().Before(until) {
			c.asksAt = time.Time{} // it was woken: the pause may be over, permits released, or the calls before this one gone
		}
	}
	c.claimAgain()
	return nil
}

// patience returns how long the call may hold: as long as the rule lets it whose permits it waits for, or else the most patient rule.
func (c *call) patience() (longest time.Duration) {
	if c.full != nil {
		return c.full.wait
	}
	for i := range c.rulings {
		longest = max(longest, c.rulings[i].wait)
	}
	return longest
}

// awaitOrder holds a call whose place has come until the calls of its line with earlier places have gone. Only calls of rules with pauses do so:
// they have just asked once more, and the answers may come in any order.
func (c *call) awaitOrder(ctx context.Context) error {
	if !c.isPausable() {
		return nil
	}
	for c.spot.IsBehind() {
		if _, err := c.sleep(ctx, pollPause, true); err != nil {
			return joinErrors(err, c.giveBack(ctx))
		}
	}
	return nil
}

// isPausable reports whether a rule of the call is Pausable.
func (c *call) isPausable() bool {
	return slices.ContainsFunc(c.rulings, func(r ruling) bool { return r.rule.Pausable })
}

// othersBefore returns the first rule for whose permits other calls of this process wait before this one, or nil.
func (c *call) othersBefore() *ruling {
	return c.firstReleasing(func(r *ruling) bool {
		lines, count := c.limiter.released(r.rule.numbers, r.subject)
		return !lines.IsFree(count, c.spot)
	})
}

// firstReleasing returns the first rule in enforce mode whose permits are released when calls end and for which is is true, or nil.
func (c *call) firstReleasing(is func(*ruling) bool) *ruling {
	if !c.releases {
		return nil
	}
	for i := range c.rulings {
		if r := &c.rulings[i]; r.isAsked() && r.rule.row().Releases && r.rule.Mode == ModeEnforce && is(r) {
			return r
		}
	}
	return nil
}

// fullRule returns the rule for whose permits a call that is not admitted has to wait, or nil. before is the rule for whose permits others wait
// before the call. If all rules let the call wait, it may wait behind them as long as that rule lets it. Otherwise that rule refuses the call.
func (c *call) fullRule(before *ruling) *ruling {
	switch {
	case c.verdict.Admitted:
		return nil
	case before == nil:
		return c.firstReleasing(func(r *ruling) bool { return c.claim(r).Earliest > c.verdict.Now })
	}
	if c.asked.AskAgain(c.verdict) {
		left := (before.wait - c.waited).Microseconds()
		c.verdict.At, c.claim(before).Refused = c.verdict.Now+left, left <= 0
	}
	return before
}
