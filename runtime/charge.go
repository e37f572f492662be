package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// charged is the charge of an admitted call. It can be given back or settled, once.
type charged struct {
	limiter *Limiter
	method  string

	mu     sync.Mutex
	done   bool
	held   []held
	owners []int // for each rule of the method, or each request: the index in held of the entry that covers it, or -1
}

// held is the charge of one rule. Without a charge the claim is zero.
type held struct {
	rule  *prepared
	claim engine.Claim
}

// keep returns a copy of the call's charges, which outlives the pooled call.
func (c *call) keep() *charged {
	kept := &struct {
		charged
		held   [1]held // most calls have one rule; this saves them two allocations
		owners [1]int
	}{charged: charged{limiter: c.limiter, method: c.method}}
	kept.charged.held = append(kept.held[:0], make([]held, len(c.rulings))...)
	kept.charged.owners = append(kept.owners[:0], c.owners...)
	for i := range c.rulings {
		r, h := &c.rulings[i], &kept.charged.held[i]
		if h.rule = r.rule; r.isAsked() {
			h.claim = *c.claim(r)
		}
	}
	return &kept.charged
}

// refund gives back the charges that wanted selects.
func (c *charged) refund(ctx context.Context, wanted func(*held) bool) error {
	did, err := c.adjust(ctx, func(h *held, _ int) int64 {
		if !wanted(h) {
			return 0
		}
		return -h.claim.Charged
	})
	if did {
		c.limiter.tell(ctx, EventRefunded, c.method, err)
	}
	return err
}

func (c *charged) settle(ctx context.Context, costs []int64) error {
	if len(costs) != len(c.owners) {
		return &RuleError{Argument: "settle", Reason: fmt.Sprintf("found %d costs; expected %d, one for each request", len(costs), len(c.owners))}
	}
	totals, kept := make([]int64, len(c.held)), make([]bool, len(c.held))
	for i, cost := range costs {
		switch owner := c.owners[i]; {
		case cost < 0 && cost != bridge.Keep:
			err := &RuleError{Argument: "settle", Reason: fmt.Sprintf("found a cost of %d; expected 0 or more", cost)}
			if owner >= 0 {
				err.Rule = c.held[owner].rule.Name
			}
			return err
		case owner >= 0 && cost == bridge.Keep:
			kept[owner] = true
		case owner >= 0:
			totals[owner] += min(cost, maxLimit)
		}
	}
	did, err := c.adjust(ctx, func(h *held, i int) int64 {
		if h.rule.Distinct != "" || kept[i] || h.claim.Charged == 0 {
			totals[i] = h.claim.Charged
			return 0
		}
		return min(totals[i]-h.claim.Charged, h.claim.MostSettled())
	})
	if did {
		c.limiter.tell(ctx, EventSettled, c.method, cmp.Or(err, c.beyond(totals)))
	}
	return err
}

// beyond returns an error if a claim was charged less than its total, because its rule does not take as much.
func (c *charged) beyond(totals []int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.held {
		h, why := &c.held[i], "a debt lasts at most 24 hours"
		if h.rule.keepsTimes() {
			why = fmt.Sprintf("a sliding-window takes at most %d permits of a call", engine.MaxTimesCost)
		}
		if h.claim.Charged < totals[i] {
			return &RuleError{Rule: h.rule.Name, Argument: "settle", Reason: fmt.Sprintf(
				"found a cost of %d; charged %d, as %s", totals[i], h.claim.Charged, why)}
		}
	}
	return nil
}

// adjust changes each charge by delta permits: above 0 it takes permits, below 0 it gives them back. It takes effect once, and reports false
// if an earlier call did. If a store has certainly not changed a charge, another call tries that charge again.
func (c *charged) adjust(ctx context.Context, delta func(h *held, i int) int64) (did bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return false, nil
	}
	call := engine.Call{Prefix: c.limiter.prefix}
	var of []*held
	for i := range c.held {
		h := &c.held[i]
		if h.claim.Delta = delta(h, i); h.claim.Delta != 0 {
			call.Claims, of = append(call.Claims, h.claim), append(of, h)
		}
	}
	left := false
	if len(of) > 0 {
		err = c.limiter.decider.Adjust(ctx, &call)
	}
	for i, h := range of {
		rest := call.Claims[i].Delta
		h.claim.Charged += h.claim.Delta - rest // another attempt must not repeat this part
		left = left || err != nil && rest != 0
	}
	c.done = !left
	return true, storeError(ctx, c.method, err)
}

// RefundUnless implements bridge.Taken.
func (c *charged) RefundUnless(ctx context.Context, ok *bool) {
	if *ok {
		return
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace) // the call may have failed because ctx ended
	defer cancel()
	// The wrapped call returns its own error. Only observers see this one.
	_ = c.refund(back, func(h *held) bool { return h.rule.Refund == RefundError })
}

// Settle implements bridge.Taken. Only observers see an error: the results of the wrapped call stay as they are.
func (c *charged) Settle(ctx context.Context, costs ...int64) {
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if wrong, ok := c.settle(back, costs).(*RuleError); ok {
		c.SettleFailed(ctx, wrong)
	}
}

// SettleFailed implements bridge.Taken.
func (c *charged) SettleFailed(ctx context.Context, err error) {
	c.limiter.tell(ctx, EventSettled, c.method, c.limiter.discreet(err))
}
