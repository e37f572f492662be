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

// outcome returns the outcome of a charge that does not change.
func (h *held) outcome() Outcome {
	o := h.rule.outcome(h.claim.Subject, h.claim.Limit)
	o.CostBefore, o.Cost = h.claim.Charged, h.claim.Charged
	return o
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
	rules, did, err := c.adjust(ctx, func(h *held, _ int) (int64, bool) { return -h.claim.Charged, wanted(h) })
	if did {
		c.limiter.tell(ctx, EventRefunded, c.method, err, rules...)
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
	rules, did, err := c.adjust(ctx, func(h *held, i int) (int64, bool) {
		if h.rule.Distinct != "" || kept[i] || h.claim.Charged == 0 {
			totals[i] = h.claim.Charged
			return 0, false
		}
		return min(totals[i]-h.claim.Charged, h.claim.MostSettled()), true
	})
	if did {
		c.limiter.tell(ctx, EventSettled, c.method, cmp.Or(err, c.beyond(totals)), rules...)
	}
	return err
}

// beyond returns an error if a claim was charged less than its total, because its rule does not take as much.
func (c *charged) beyond(totals []int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.held {
		h, why := &c.held[i], "a debt lasts at most 24 hours"
		if h.claim.Charged < totals[i] {
			return &RuleError{Rule: h.rule.Name, Argument: "settle", Reason: fmt.Sprintf(
				"found a cost of %d; charged %d, as %s", totals[i], h.claim.Charged, why)}
		}
	}
	return nil
}

// adjust changes the charges that delta selects by as many permits as it returns: above 0 it takes permits, below 0 it gives them back. The
// rules are those of the selected charges that are not 0. adjust takes effect once, and reports false if an earlier call did. If a store has
// certainly not changed a charge, another call tries that charge again.
func (c *charged) adjust(ctx context.Context, delta func(h *held, i int) (int64, bool)) (rules []Outcome, did bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return nil, false, nil
	}
	call := engine.Call{Prefix: c.limiter.prefix}
	var selected, of []*held
	for i := range c.held {
		h := &c.held[i]
		n, wanted := delta(h, i)
		if !wanted || h.claim.Charged == 0 {
			continue
		}
		rules, selected = append(rules, h.outcome()), append(selected, h)
		if h.claim.Delta = n; n != 0 {
			call.Claims, of = append(call.Claims, c.present(h)), append(of, h)
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
	for i, h := range selected {
		rules[i].Cost = h.claim.Charged
	}
	c.done = !left
	return rules, true, storeError(ctx, c.method, err)
}

// present returns the claim of a charge that is changed now. What is added to the charge counts by the limit that is in force now, unless the
// limit came with the call and no override replaces it, or an override has changed the window.
func (c *charged) present(h *held) engine.Claim {
	claim := h.claim
	rule, _ := c.limiter.inForce(cmp.Or(h.rule.base, h.rule), claim.Subject)
	if claim.Delta > 0 && rule.tag == h.rule.tag && rule.Limit > 0 && (rule.pinned || claim.Limit == h.rule.Limit) {
		claim.Limit, claim.Burst = rule.Limit, rule.claim.Burst
	}
	return claim
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

// SettleFailed implements bridge.Taken. The charges stay as they are.
func (c *charged) SettleFailed(ctx context.Context, err error) {
	c.mu.Lock()
	var rules []Outcome
	for i := range c.held {
		if h := &c.held[i]; h.claim.Charged > 0 {
			rules = append(rules, h.outcome())
		}
	}
	c.mu.Unlock()
	c.limiter.tell(ctx, EventSettled, c.method, c.limiter.discreet(err), rules...)
}
