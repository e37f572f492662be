package decide

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/line"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// waiting are the calls of this process that wait. A call that is held by calls that run is in the line of the releases of a count. Other calls
// are in the line of one of their rules.
var waiting = line.New()

// count identifies the count of a subject. Only calls of this limiter wait in its line.
func (l *Limiter) count(rule *Rule, subject string) line.Count {
	return line.Count{Owner: l, Name: rule.Numbers.Name, Tag: rule.Numbers.Tag, Subject: subject}
}

// released identifies the releases of a count. Calls of all limiters of the prefix wait in its line, unless the rule has instance scope.
func (l *Limiter) released(rule *Rule, subject string) line.Count {
	count := l.count(rule, subject)
	if count.Releases = true; !rule.Instance {
		count.Owner = l.fleet
	}
	return count
}

// countOf identifies the count that one of its rules asks.
func (c *Call) countOf(a *Asked) line.Count { return c.limiter.count(a.Rule, a.Claim.Subject) }

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

// ownRule returns the rule in whose line the call waits: its first rule in enforce mode with pauses, or else its first rule in enforce mode. A call
// that waits has such a rule, because rules in other modes delay no call.
func (c *Call) ownRule() *Asked {
	pausable := c.firstEnforced(func(r *Asked) bool { return r.Rule.Numbers.Pausable })
	return cmp.Or(pausable, c.firstEnforced(func(*Asked) bool { return true }))
}

// lineOfPause returns the line in which a pause holds the call: that of its own rule if this one is paused, and otherwise that of its first paused
// rule, so that other calls of its own rule go on. If no answer has named a paused rule yet, it is that of its own rule.
func (c *Call) lineOfPause() line.Count {
	isPaused := func(r *Asked) bool { return r.Claim.Paused > 0 }
	r := c.ownRule()
	if !isPaused(r) {
		r = cmp.Or(c.firstEnforced(isPaused), r)
	}
	return c.countOf(r)
}

// put gives the call a state, in a line.
func (c *Call) put(state line.State, count line.Count) {
	if c.waiter.Rules == nil {
		for i := range c.Asked {
			c.waiter.Rules = append(c.waiter.Rules, c.countOf(&c.Asked[i]))
		}
	}
	waiting.Put(&c.waiter, state, count, c.verdict.At)
}

// ruleWithLine returns the first rule in whose line a pause holds calls, or nil.
func (c *Call) ruleWithLine() *Asked {
	return c.firstEnforced(func(r *Asked) bool { return waiting.FirstHeld(c.countOf(r)) != nil })
}

// standBehind lets a call that has come wait behind others of one of its rules, if a pause holds those.
func (c *Call) standBehind() {
	if r := c.ruleWithLine(); r != nil {
		c.waitsSince = c.limiter.store.Time()
		c.put(line.HeldByPause, c.countOf(r))
	}
}

// awaitTurn returns when a call that is held may ask: as the first of its line at its time, or when it is woken; or at the end of its patience. If
// that is the end of ctx, awaitTurn returns an error: whether a store would still answer depends on the store.
func (c *Call) awaitTurn(ctx context.Context) error {
	for {
		until := c.waitsSince.Add(c.patience())
		if c.until.Before(until) && waiting.FirstHeld(c.waiter.Count) == &c.waiter {
			until = c.until
		}
		if !c.limiter.store.Time().Before(until) {
			if ended(ctx) != nil {
				return c.abandon(ctx)
			}
			return nil
		}
		woken, err := c.sleep(ctx, until)
		if err != nil {
			return err
		}
		if woken {
			c.until = time.Time{} // it asks as soon as it is the first: a pause may be over, or permits released
		}
	}
}

// patience returns how long the call may wait. If the call waits for permits of a rule, that is the wait of this rule, and otherwise the longest
// wait of its rules.
func (c *Call) patience() (longest time.Duration) {
	if c.waiter.State == line.HeldByRunning {
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
	for waiting.IsBehind(&c.waiter) {
		if _, err := c.sleep(ctx, c.limiter.store.Time().Add(pollPause)); err != nil {
			return printable.Join(err, c.giveBack(ctx))
		}
	}
	return nil
}

// othersHold reports whether a pause holds other calls in the line of a call that has a place.
func (c *Call) othersHold() bool { return waiting.FirstHeld(c.waiter.Count) != nil }

// contestedRule returns the first rule for whose permits earlier calls of this process wait, or nil.
func (c *Call) contestedRule() *Asked {
	return c.firstEnforced(func(r *Asked) bool {
		if !r.Rule.Row.Releases {
			return false
		}
		first := waiting.FirstHeld(c.limiter.released(r.Rule, r.Claim.Subject))
		return first != nil && first != &c.waiter
	})
}

// noteAwaited sets the rule whose permits others must release before the call can be admitted, if there is one. contested is the rule for
// whose permits earlier calls wait, or nil: those calls come first. A call that may wait asks again when it is woken, or when it has waited for the
// Wait of the contested rule. After that time the contested rule refuses the call.
func (c *Call) noteAwaited(contested *Asked) {
	switch c.awaited = contested; {
	case c.verdict.Admitted:
		c.awaited = nil
	case contested == nil:
		c.awaited = c.firstEnforced(func(r *Asked) bool { return r.Rule.Row.Releases && r.Claim.Earliest > c.verdict.Now })
	case c.AskAgain(c.verdict):
		left := (contested.wait - c.waited).Microseconds()
		c.verdict.At, contested.Claim.Refused = c.verdict.Now+left, left <= 0
	}
}
