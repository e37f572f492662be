package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// charged is the charge of an admitted call. Each rule's can be settled once, and given back once, also after it was settled.
type charged struct {
	limiter *Limiter
	method  string

	mu     sync.Mutex
	held   []held
	owners []int // for each rule of the method, or each request: the index in held of the entry that covers it, or -1
}

// held is the charge of one rule. Without a charge the claim is zero.
type held struct {
	rule  *prepared
	claim engine.Claim
	added *engine.Claim // what a settlement took beside claim; nil if it took nothing
	stage stage
}

// stage is what was done with a charge. It only grows.
type stage uint8

const (
	taken stage = iota
	settled
	refunded
)

// cost returns how many permits are charged.
func (h *held) cost() int64 {
	if h.added != nil {
		return h.claim.Charged + h.added.Charged
	}
	return h.claim.Charged
}

// outcome returns the outcome of a charge that does not change.
func (h *held) outcome() Outcome {
	o := h.rule.outcome(h.claim.Subject, h.claim.Limit)
	o.CostBefore, o.Cost = h.cost(), h.cost()
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
	rules, _, err := c.adjust(ctx, refunded, func(h *held, _ int) (int64, bool) { return 0, wanted(h) })
	if len(rules) > 0 {
		c.limiter.tell(ctx, EventRefunded, c.method, err, rules...)
	}
	return err
}

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
	lines, count := l.released(h.claim.Rule, h.claim.Subject)
	lines.WakeFirst(count)
}

func (c *charged) settle(ctx context.Context, costs []int64) error {
	if len(costs) != len(c.owners) {
		return &RuleError{Argument: "settle", Reason: fmt.Sprintf("found %d costs; expected %d, one for each request", len(costs), len(c.owners))}
	}
	totals, kept := make([]int64, len(c.held)), make([]bool, len(c.held))
	for i, cost := range costs {
		switch owner := c.owners[i]; {
		case cost < 0 && cost != bridge.Keep:
			rule := ""
			if owner >= 0 {
				rule = c.held[owner].rule.Name
			}
			return wrongCost(rule, cost)
		case owner >= 0 && cost == bridge.Keep:
			kept[owner] = true
		case owner >= 0:
			totals[owner] += min(cost, maxLimit)
		}
	}
	rules, short, err := c.adjust(ctx, settled, func(h *held, i int) (int64, bool) {
		return totals[i], h.rule.numbers.Kind.Takes("settle") && !kept[i]
	})
	if len(rules) > 0 {
		c.limiter.tell(ctx, EventSettled, c.method, cmp.Or(err, short), rules...)
	}
	return err
}

// adjust changes the charges that total selects to the cost that total returns. It returns the outcomes of their rules. A charge that is at the
// stage to, or later, stays as it is, and so does one of 0. If a store has certainly not changed a charge, another call tries that charge again.
// short says that a rule does not take its whole cost.
func (c *charged) adjust(ctx context.Context, to stage, total func(h *held, i int) (int64, bool)) (rules []Outcome, short, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var selected []*held
	var totals []int64
	var first, second []*engine.Claim
	for i := range c.held {
		h := &c.held[i]
		cost, wanted := total(h, i)
		if !wanted || h.stage >= to || h.cost() == 0 {
			continue
		}
		rules, selected, totals = append(rules, h.outcome()), append(selected, h), append(totals, cost)
		delta := min(cost-h.cost(), h.claim.MostSettled())
		if delta > 0 {
			h.added = c.addition(h, delta)
			first = append(first, h.added)
			continue
		}
		h.claim.Delta = max(delta, -h.claim.Charged)
		first = append(first, &h.claim)
		if h.added != nil {
			h.added.Delta = delta - h.claim.Delta
			second = append(second, h.added)
		}
	}
	if err = c.apply(ctx, first); err == nil {
		err = c.apply(ctx, second)
	}
	for i, h := range selected {
		if err == nil || h.isDone() {
			h.stage = to
		}
		if h.rule.row().Releases {
			h.over(c.limiter)
		}
		if rules[i].Cost = h.cost(); h.cost() < totals[i] && short == nil {
			short = &RuleError{Rule: h.rule.Name, Argument: "settle", Reason: fmt.Sprintf(
				"found a cost of %d; charged %d, as a debt lasts at most 24 hours", totals[i], h.cost())}
		}
	}
	return rules, short, storeError(ctx, c.method, err)
}

// isDone reports whether nothing is left to change.
func (h *held) isDone() bool { return h.claim.Delta == 0 && (h.added == nil || h.added.Delta == 0) }

// apply changes charges of one call by their Deltas, in which it leaves what was not done.
func (c *charged) apply(ctx context.Context, claims []*engine.Claim) error {
	claims = slices.DeleteFunc(claims, func(claim *engine.Claim) bool { return claim.Delta == 0 })
	if len(claims) == 0 {
		return nil
	}
	call := engine.Call{Prefix: c.limiter.prefix}
	for _, claim := range claims {
		call.Claims = append(call.Claims, *claim)
	}
	if ctx.Err() != nil { // what has ended before is no deadline for this
		var cancel context.CancelFunc
		ctx, cancel = afterCall(ctx)
		defer cancel()
	}
	err := c.limiter.decider.Adjust(ctx, &call)
	for i, claim := range claims {
		if claim.Delta > 0 {
			claim.At = call.Claims[i].At
		}
		claim.Charged += claim.Delta - call.Claims[i].Delta // another attempt must not repeat this part
		claim.Delta = call.Claims[i].Delta
	}
	return err
}

// addition returns the claim of n permits that a settlement takes beside a charge. They count by the limit that is in force now, unless the
// limit came with the call and no override replaces it, or an override has changed the window.
func (c *charged) addition(h *held, n int64) *engine.Claim {
	claim := h.claim
	claim.Charged, claim.Delta = 0, n
	rule, _, _ := c.limiter.inForce(cmp.Or(h.rule.base, h.rule), claim.Subject)
	if rule.tag == h.rule.tag && rule.Limit > 0 && (h.rule.Computed || claim.Limit == h.rule.Limit) {
		claim.Limit, claim.Burst = rule.Limit, rule.claim.Burst
	}
	return &claim
}

// RefundUnless implements bridge.Taken.
func (c *charged) RefundUnless(ctx context.Context, ok *bool) {
	if *ok {
		return
	}
	back, cancel := afterCall(ctx)
	defer cancel()
	// The wrapped call returns its own error. Only observers see this one.
	_ = c.refund(back, func(h *held) bool { return h.rule.Refund == RefundError })
}

// Settle implements bridge.Taken. Only observers see an error: the results of the wrapped call stay as they are.
func (c *charged) Settle(ctx context.Context, costs ...int64) {
	back, cancel := afterCall(ctx)
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
		if h := &c.held[i]; h.cost() > 0 {
			rules = append(rules, h.outcome())
		}
	}
	c.mu.Unlock()
	c.limiter.tell(ctx, EventSettled, c.method, c.limiter.discreet(err), rules...)
}
