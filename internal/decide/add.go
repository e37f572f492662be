package decide

import (
	"context"
	"fmt"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// A call that runs asks for more permits as another call of its method would: by the same keys and limits, of the rules with cost= alone, and without a
// wait. Each charge has what it took as one part more.

// maxParts bounds how many times of Adds a charge keeps.
const maxParts = 64

// Add takes n more permits from every rule with cost= that is neither settled nor refunded, or from none. Calls go one after the other.
func (c *Charges) Add(ctx context.Context, n int64) error {
	call, err := c.askForMore(ctx, n)
	if call == nil {
		return err
	}
	defer call.Free()
	call.noteStore(ctx)
	call.tell(ctx)
	if call.err == nil && !call.verdict.Admitted {
		return c.limiter.public.Refusal(call)
	}
	return call.err
}

// askForMore returns the call that has asked for n more permits. The call is nil if no rule is asked, or if err says why none can be. Observers may change
// the charges, which therefore must not be locked when they are told.
func (c *Charges) askForMore(ctx context.Context, n int64) (*Call, error) {
	if n < 1 {
		return nil, c.wrongAdd(fmt.Sprintf("found %d permits; expected 1 or more", n))
	}
	if !slices.ContainsFunc(c.method.rules.All, (*Rule).settles) {
		return nil, c.costMissing("add")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, c.wrongAdd("the call has ended")
	}
	call, isSettled := c.limiter.open(len(c.method.rules.All)), false
	call.method, call.plan, call.Grows = c.method, c.method.current(), true
	for i, rule := range c.method.rules.All {
		if at := c.of(i); at >= 0 && rule.settles() {
			ch := &c.list[at]
			isSettled = isSettled || ch.stage >= settled
			call.askMoreOf(ch, i, n)
		}
	}
	if len(call.Asked) == 0 && call.err == nil {
		call.Free()
		if isSettled {
			return nil, c.wrongAdd("the call is settled or refunded")
		}
		return nil, nil
	}
	call.ask(ctx)
	if call.err == nil && call.verdict.Admitted {
		c.keep(call)
	}
	return call, nil
}

func (c *Charges) wrongAdd(reason string) error {
	return c.limiter.public.MethodError(c.method.name(), "add", reason)
}

// askMoreOf adds a rule of the method to what the call asks for, beside a charge. A rule that refused the running call in shadow mode has charged nothing,
// and does not now.
func (c *Call) askMoreOf(ch *charge, rule int, n int64) {
	if c.err != nil || ch.stage >= settled || ch.claim.Refused {
		return
	}
	c.grows, c.next = ch, rule
	asked := len(c.Asked)
	c.err = c.addRule(&c.plan.rules[rule], &Use{Key: ch.text(), Cost: n, Limit: ch.given})
	if len(c.Asked) > asked {
		c.Asked[asked].Before = ch.cost()
	}
}

// keep adds to the charges what a call took.
func (c *Charges) keep(call *Call) {
	for i := range call.Asked {
		if a := &call.Asked[i]; a.Claim.Charged > 0 {
			c.raise(a.Index, a.own)
			c.list[c.of(a.Index)].grow(part{a.Rule, *a.Claim, call.by})
		}
	}
	for _, j := range call.joined {
		if call.Asked[j.to].Claim.Charged > 0 {
			c.raise(j.index, j.cost)
		}
	}
}

// raise raises what a rule itself costs. No settlement takes more than MaxLimit.
func (c *Charges) raise(rule int, n int64) {
	own := c.own(rule)
	*own = min(*own, engine.MaxLimit) + min(n, engine.MaxLimit)
}

// grow adds a part to the charge. If its time is that of the newest part, it joins that one. If the charge keeps maxParts already, it joins the newest one
// of the same count. Permits count as taken earlier then than they were, so that less of them may go back, and never more.
func (ch *charge) grow(p part) {
	full := len(ch.more) >= maxParts
	for i := len(ch.more) - 1; i >= 0; i-- {
		last := &ch.more[i]
		same := last.by == p.by && last.rule.countsWith(p.rule)
		if same && (full || last.claim.At == p.claim.At) {
			last.claim.Charged += p.claim.Charged
			last.claim.Extra += p.claim.Extra
			last.claim.Stored += p.claim.Stored
			return
		}
		if !full {
			break
		}
	}
	ch.more = append(ch.more, p)
}
