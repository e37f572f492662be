package decide

import (
	"cmp"
	"context"
	"github.com/ratelimit-go/ratelimit/internal/printable"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// Calls of this process that wait are in lines. A call that sleeps until a time, or that a pause holds, is in the line of one of its rules. A
// call that waits until others release permits of a count is in the line of releases of that count. A release in this process wakes the first
// call there. That call also asks now and then for what was released elsewhere.

// pollPause is how often the first call that a pause holds asks whether the pause is over: another process may have ended it. A call whose place
// has come looks for calls with earlier places as often.
const pollPause = time.Second

// firstEnforced returns the first rule in enforce mode that fits, or nil.
func (c *Call) firstEnforced(fits func(*Asked) bool) *Asked {
	for i := range c.Asked {
		if r := &c.Asked[i]; r.Rule.enforces() && fits(r) {
			return r
		}
	}
	return nil
}

// line returns the line of a call that waits: that of its first rule in enforce mode with pauses, or else that of its first rule in enforce mode.
// A call that waits has such a rule, because rules in other modes delay no call.
func (c *Call) line() fleet.Count {
	pausable := c.firstEnforced(func(r *Asked) bool { return r.Rule.Numbers.Pausable })
	return cmp.Or(pausable, c.firstEnforced(func(*Asked) bool { return true })).count()
}

// counts returns what all rules of the call count.
func (c *Call) counts() []fleet.Count {
	counts := make([]fleet.Count, len(c.Asked))
	for i := range c.Asked {
		counts[i] = c.Asked[i].count()
	}
	return counts
}

// lineOfRelease returns the line of the calls that wait until others release permits of a count.
func (l *Limiter) lineOfRelease(rule *engine.Rule, subject string) (*fleet.Lines, fleet.Count) {
	lines := &l.fleet.Lines
	if rule.Instance {
		lines = &l.releaseLines
	}
	return lines, fleet.Count{Name: rule.Name, Tag: rule.Tag, Subject: subject}
}

// lineOfPause returns the line in which a pause holds the call. It is the call's own line if the rule of that line is paused. Otherwise it
// is the line of the first paused rule, so that other calls of the own line go on. A call that gives its place back holds in its own line
// until it has asked which rule is paused.
func (c *Call) lineOfPause() (line fleet.Count) {
	own := c.line()
	for i := range c.Asked {
		r := &c.Asked[i]
		if r.Rule.enforces() && r.Claim.Paused > 0 && (line == (fleet.Count{}) || r.count() == own) {
			line = r.count()
		}
	}
	return cmp.Or(line, own)
}

// hold lets the call hold in a line. If the call waits for permits of a rule, that is the line of their releases, and otherwise that of its
// pause. The first call that holds there asks again at the given time, or when it is woken.
func (c *Call) hold(at time.Time) {
	c.asksAt = at
	lines, count := &c.limiter.placeLines, fleet.Count{}
	if c.awaited == nil {
		count = c.lineOfPause()
	} else {
		lines, count = c.limiter.lineOfRelease(&c.awaited.Rule.Numbers, c.awaited.Claim.Subject)
	}
	old := c.waiter
	c.waiter = lines.Put(old, c.came, count, c.counts(), fleet.Holding)
	if c.awaited != nil && c.waiter != old && lines.IsFree(count, c.waiter) { // permits may have been released before the call entered
		c.asksAt = c.limiter.store.Time().Add(shortestSleep)
	}
}

// lineUp puts the call into its line, with the time of its place. The call sleeps until then.
func (c *Call) lineUp() {
	c.waiter = c.limiter.placeLines.Put(c.waiter, c.came, c.line(), c.counts(), c.verdict.At)
}

// awaitTurn holds the call while earlier calls of its line hold, at most for its patience. The first call that holds sleeps until asksAt or
// until it is woken. Then the claims are filled again.
func (c *Call) awaitTurn(ctx context.Context) error {
	if c.waiter == nil && !c.Peek {
		r := c.firstEnforced(func(r *Asked) bool { return !c.limiter.placeLines.IsFree(r.count(), nil) })
		if r == nil { // no other call holds in a line of this one
			return nil
		}
		c.waiter, c.waitsSince = c.limiter.placeLines.Put(nil, c.came, r.count(), c.counts(), fleet.Holding), c.limiter.store.Time()
	}
	for {
		holds, first := c.waiter.Holds()
		if !holds {
			break
		}
		until := c.waitsSince.Add(c.patience())
		if first && c.asksAt.Before(until) {
			until = c.asksAt
		}
		left := until.Sub(c.limiter.store.Time())
		if left <= 0 {
			break
		}
		woken, err := c.sleep(ctx, left, false)
		if err != nil {
			return err
		}
		if woken {
			c.asksAt = time.Time{} // it asks as soon as it is the first: a pause may be over, or permits released
		}
	}
	c.refillClaims()
	return nil
}

// patience returns how long the call may hold. If the call waits for permits of a rule, that is the wait of this rule, and otherwise the longest
// wait of its rules.
func (c *Call) patience() (longest time.Duration) {
	if c.awaited != nil {
		return c.awaited.wait
	}
	for i := range c.Asked {
		longest = max(longest, c.Asked[i].wait)
	}
	return longest
}

// awaitOrder lets a call whose place has come wait until the calls of its line with earlier places have gone. Only calls of rules with pauses
// do so: each has just asked whether there is a pause, and the answers may come in any order.
func (c *Call) awaitOrder(ctx context.Context) error {
	if !slices.ContainsFunc(c.Asked, func(r Asked) bool { return r.Rule.Numbers.Pausable }) {
		return nil
	}
	for c.waiter.IsBehind() {
		if _, err := c.sleep(ctx, pollPause, true); err != nil {
			return printable.Join(err, c.giveBack(ctx))
		}
	}
	return nil
}

// othersHold reports whether other calls hold in the line of the call.
func (c *Call) othersHold() bool { return !c.limiter.placeLines.IsFree(c.line(), c.waiter) }

// contestedRule returns the first rule for whose permits earlier calls of this process wait, or nil.
func (c *Call) contestedRule() *Asked {
	return c.firstThatReleases(func(r *Asked) bool {
		lines, count := c.limiter.lineOfRelease(&r.Rule.Numbers, r.Claim.Subject)
		return !lines.IsFree(count, c.waiter)
	})
}

// firstThatReleases returns the first rule in enforce mode that fits and whose permits are released when calls end. It returns nil if there is
// none.
func (c *Call) firstThatReleases(fits func(*Asked) bool) *Asked {
	return c.firstEnforced(func(r *Asked) bool { return r.Rule.Row.Releases && fits(r) })
}

// await sets the rule whose permits others must release before the call can be admitted, if there is one. contested is the contestedRule. If
// there is one, earlier calls come first. A call that may wait asks again when it is woken, or when it has waited for the Wait of the contested
// rule. After that time the contested rule refuses the call.
func (c *Call) await(contested *Asked) {
	switch c.awaited = contested; {
	case c.verdict.Admitted:
		c.awaited = nil
	case contested == nil:
		c.awaited = c.firstThatReleases(func(r *Asked) bool { return r.Claim.Earliest > c.verdict.Now })
	case c.AskAgain(c.verdict):
		left := (contested.wait - c.waited).Microseconds()
		c.verdict.At, contested.Claim.Refused = c.verdict.Now+left, left <= 0
	}
}
