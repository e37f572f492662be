package decide

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// A call that brings NoLimit is charged nothing by that rule. But a block or a pause of its key refuses it.

// addUnlimited adds a rule that does not limit the call. A call that asks for more permits asks only rules that do.
func (c *Call) addUnlimited(a *Asked) {
	if !a.Rule.enforces() || c.Grows {
		return
	}
	own := *a
	own.Claim, own.Limit = new(engine.Claim), a.Rule.MostLimit // which programs see in a refusal
	*own.Claim = *a.Claim
	own.setAsk(0)
	c.unlimited = append(c.unlimited, own)
}

// bar makes those rules that do not limit the call refuse it whose keys are blocked or paused by now. If a pause has ended, its rule goes again.
func (c *Call) bar(ctx context.Context) error {
	if len(c.unlimited) == 0 {
		return nil
	}
	n := len(c.Claims) - c.barred
	c.Asked, c.Claims, c.rules, c.barred = c.Asked[:len(c.Asked)-c.barred], c.Claims[:n], c.rules[:n], 0
	if err := c.readMarkers(ctx); err != nil {
		return c.limiter.StoreError(ctx, c.Method(), err)
	}
	for i := range c.unlimited {
		a := &c.unlimited[i]
		if a.BlockLeft == 0 && a.pauseLeft == 0 {
			continue
		}
		a.setAsk(c.waited)
		c.Asked = append(c.Asked, *a) // there is room for all rules of the method
		last := &c.Asked[len(c.Asked)-1]
		last.Claim = &c.Claims[:len(c.Claims)+1][len(c.Claims)]
		*last.Claim = *a.Claim
		c.addClaim(last)
		c.barred++
	}
	return nil
}

// InOrder returns Asked in the order of the rules. Rules that do not limit a call, and yet refuse it, are the last ones of Asked.
func (c *Call) InOrder() []Asked {
	if c.barred == 0 {
		return c.Asked
	}
	return slices.SortedStableFunc(slices.Values(c.Asked), func(a, b Asked) int { return cmp.Compare(a.Index, b.Index) })
}

// readMarkers reads how long the rules that do not limit the call block and pause its keys. Settings say so, and markers of rules with block= or
// pause=. A call that has waited is not refused by settings that block.
func (c *Call) readMarkers(ctx context.Context) error {
	peek := c.limiter.newPeek()
	var of []*Asked // by claim
	for i := range c.unlimited {
		a := &c.unlimited[i]
		if !c.waitsSince.IsZero() {
			a.BlockLeft, a.pauseLeft = 0, c.limiter.pauseLeft(a)
		}
		for _, count := range a.Rule.Counts() {
			claim := *a.Claim
			claim.Rule, claim.Limit = &count.Numbers, count.MostLimit
			if (count.Numbers.Block > 0 || count.Numbers.Pausable) && peek.Put(count, claim) == nil {
				of = append(of, a)
			}
		}
	}
	now, err := peek.look(ctx)
	for i := range of {
		claim, left := &peek.Claims[i], func(until int64) time.Duration { return time.Duration(max(0, until-now)) * time.Microsecond }
		if claim.Blocked {
			of[i].BlockLeft = max(of[i].BlockLeft, left(claim.Earliest))
		}
		of[i].pauseLeft = max(of[i].pauseLeft, left(claim.Paused))
	}
	return err
}
