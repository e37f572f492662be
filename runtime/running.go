package ratelimit

import (
	"context"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Release says that the call is over: it gives back the permits of rules with [Concurrency], once. Later calls return nil. [Decision.Refund] gives
// those back, too. Permits that are not released end after the rule's Per. The errors are those of Refund. After an error the store goes on trying
// by itself.
func (d Decision) Release(ctx context.Context) error {
	if d.charged == nil {
		return nil
	}
	return d.charged.release(ctx)
}

func (c *charged) release(ctx context.Context) error {
	rules, _, err := c.adjust(ctx, refunded, func(h *held, _ int) (int64, bool) { return 0, h.rule.row().Releases })
	if len(rules) > 0 {
		c.limiter.tell(ctx, EventReleased, c.method, err, rules...)
	}
	return err
}

// Release implements bridge.Taken. Only observers see an error.
func (c *charged) Release(ctx context.Context) {
	back, cancel := afterCall(ctx)
	defer cancel()
	_ = c.release(back)
}

// over notes that the call is over: its permits are given back, or the store goes on trying. Calls of this process that wait for them may ask.
func (h *held) over(l *Limiter) {
	h.stage, h.claim.Charged, h.claim.Delta = refunded, 0, 0
	lines, count := l.lineOf(&h.claim)
	lines.WakeFirst(count)
}

// lineOf returns the line of the calls that wait for a claim's count.
func (l *Limiter) lineOf(claim *engine.Claim) (*fleet.Lines, fleet.Count) {
	lines := &l.fleet.Lines
	if claim.Rule.Instance {
		lines = &l.lines
	}
	return lines, fleet.Count{Name: claim.Rule.Name, Tag: claim.Rule.Tag, Subject: claim.Subject}
}

// decideInLine is decideInTime for a call with a rule that counts calls that run. Nobody knows when these end. So a call that may wait is in a
// line with the other calls of this process. The first is woken when permits come back in this process, and asks every engine.AskEvery for what
// came back elsewhere. A call that finds a line asks only what the other rules say.
func (c *call) decideInLine(ctx context.Context) error {
	var own *fleet.Waiter
	defer func() { own.Leave() }()
	c.began = c.limiter.store.Time()
	for {
		before := c.othersBefore(own)
		if err := c.askInLine(ctx, before != nil); err != nil {
			return storeError(ctx, c.method, err)
		}
		if c.verdict.Admitted {
			own.Leave()
			own = nil
			if c.verdict.At <= c.verdict.Now {
				return nil
			}
			if goes, err := c.awaitPlace(ctx); goes || err != nil {
				return err
			}
			c.claimAgain()
			continue
		}
		until, d := c.nextAsk(before)
		if c.asked.Peek || d == 0 {
			c.noteHold()
			return nil
		}
		if until != nil { // no pause holds the call
			c.spot.Leave()
			c.spot = nil
		}
		if until == nil { // another rule makes the call wait
			own.Leave()
			own = nil
		} else if lines, count := c.limiter.lineOf(c.claim(until)); !own.IsIn(lines, count) {
			own.Leave()
			own = lines.EnterHolding(count)
			if lines.IsFree(count, own) { // permits may have come back before the call entered
				d = shortestSleep * time.Microsecond
			}
		}
		if _, err := c.sleep(ctx, own, d.Microseconds(), false); err != nil {
			return err
		}
		c.claimAgain()
	}
}

// nextAsk returns how long a call sleeps that was not admitted, or 0 if it is refused. It also returns the rule under which the call waits for
// others to end, or nil.
func (c *call) nextAsk(before *ruling) (until *ruling, d time.Duration) {
	if before != nil {
		if !c.mayStay(before) {
			return before, 0
		}
		return before, before.wait - c.waited
	}
	if !c.asked.AskAgain(c.verdict) {
		return nil, 0
	}
	d = time.Duration(max(c.verdict.At-c.verdict.Now, shortestSleep)) * time.Microsecond
	if c.asked.PausedUntil() > 0 {
		d = min(d, pollPause)
	}
	if until = c.firstFull(); until != nil {
		d = max(min(d, until.wait-c.waited), shortestSleep*time.Microsecond)
	}
	return until, d
}

// askInLine asks the stores. If others are before the call, it charges nothing.
func (c *call) askInLine(ctx context.Context, others bool) (err error) {
	reports := c.asked.Report
	c.asked.Refused = others
	if c.paused {
		c.pauseHere()
		return nil
	}
	c.asked.Report = reports || others
	c.verdict, err = c.limiter.decider.Decide(ctx, &c.asked)
	c.asked.Report = reports
	return err
}

// othersBefore returns the first rule for which other calls of this process wait before this one, or nil.
func (c *call) othersBefore(own *fleet.Waiter) *ruling {
	for i := range c.rulings {
		r := &c.rulings[i]
		if !r.isAsked() || !r.rule.row().Releases || r.rule.Mode != ModeEnforce {
			continue
		}
		if lines, count := c.limiter.lineOf(c.claim(r)); !lines.IsFree(count, own) {
			return r
		}
	}
	return nil
}

// firstFull returns the first rule under which the call has to wait for others to end, or nil.
func (c *call) firstFull() *ruling {
	for i := range c.rulings {
		r := &c.rulings[i]
		if r.isAsked() && r.rule.row().Releases && r.rule.Mode == ModeEnforce && c.claim(r).Earliest > c.verdict.Now {
			return r
		}
	}
	return nil
}

// mayStay reports whether a call may wait behind others, because all rules let it. Otherwise the rule under which they wait refuses the call.
func (c *call) mayStay(before *ruling) bool {
	refused := false
	for i := range c.asked.Claims {
		claim := &c.asked.Claims[i]
		refused = refused || claim.Refused && claim.Mode == engine.Enforce
	}
	if !refused && before.wait > c.waited {
		return true
	}
	if !refused {
		c.claim(before).Refused = true
	}
	return false
}
