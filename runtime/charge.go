package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

// charges are the charges of an admitted call. The charge of each rule can be settled once, and given back once, also after it was settled.
type charges struct {
	limiter *Limiter
	method  string
	rules   []*preparedRule // of the method

	mu     sync.Mutex
	list   []charge
	shares []share // one for each rule of the method, or each request; ruling is the index in list
}

// charge is the charge of one rule. A rule that refuses in shadow mode has charged nothing, and no settlement charges it.
type charge struct {
	rule  *preparedRule
	claim engine.Claim
	added *engine.Claim // what a settlement took beside claim; nil if it took nothing
	stage stage

	noCost bool // the call began at a cost of 0
}

// stage is what was done with a charge. It only grows.
type stage uint8

const (
	taken stage = iota
	settled
	refunded
)

// cost returns how many permits are charged.
func (ch *charge) cost() int64 {
	if ch.added != nil {
		return ch.claim.Charged + ch.added.Charged
	}
	return ch.claim.Charged
}

// outcome returns the outcome of a charge that does not change.
func (ch *charge) outcome() Outcome {
	o := ch.rule.outcome(ch.claim.Subject, ch.claim.Limit)
	o.CostBefore, o.Cost = ch.cost(), ch.cost()
	return o
}

// charges returns the charges of the call. The call is pooled, so they have memory of their own.
func (c *call) charges() *charges {
	own := &struct {
		charges
		list   [1]charge // most calls have one rule; this saves them two allocations
		shares [1]share
	}{charges: charges{limiter: c.limiter, method: c.method, rules: c.rules}}
	all := &own.charges
	all.list = append(own.list[:0], make([]charge, len(c.rulings))...)
	all.shares = append(own.shares[:0], c.shares...)
	for i := range c.rulings {
		r := &c.rulings[i]
		all.list[i].rule, all.list[i].claim = r.rule, *r.claim
		claim := &all.list[i].claim
		if i > 0 && r.subject == c.rulings[i-1].subject { // as in most calls; one copy serves
			claim.Subject, claim.Member = all.list[i-1].claim.Subject, strings.Clone(claim.Member)
		} else {
			claim.KeepTexts()
		}
	}
	for i := range all.shares {
		if at := &all.shares[i]; at.ruling < skipped {
			at.ruling = all.place(&c.noCost[skipped-1-at.ruling])
		}
	}
	return all
}

// place returns the index of the charge on the count of one that began at a cost of 0, which it adds if there is none.
func (c *charges) place(begun *charge) int {
	id := begun.rule.id()
	for i := range c.list {
		if ch := &c.list[i]; ch.rule.id() == id && ch.claim.Subject == begun.claim.Subject {
			return i
		}
	}
	c.list = append(c.list, *begun)
	return len(c.list) - 1
}

// giveBack gives back the charges that wanted selects. c is nil if nothing was charged.
func (c *charges) giveBack(ctx context.Context, kind EventKind, wanted func(*charge) bool) error {
	if c == nil {
		return nil
	}
	rules, _, err := c.adjust(ctx, refunded, func(ch *charge, _ int) (int64, bool) { return 0, wanted(ch) })
	if len(rules) > 0 {
		c.limiter.tell(ctx, kind, c.method, err, rules...)
	}
	return err
}

// releases reports whether the call that was charged releases the permits when it ends.
func (ch *charge) releases() bool { return ch.rule.row.Releases }

// Release implements bridge.Taken. Only observers see an error.
func (c *charges) Release(ctx context.Context) {
	back, cancel := afterCall(ctx)
	defer cancel()
	_ = c.giveBack(back, EventReleased, (*charge).releases)
}

// end notes that the call is over: its permits are given back, or the store goes on trying. end wakes the first call of this process that waits
// for them.
func (ch *charge) end(l *Limiter) {
	ch.stage, ch.claim.Charged, ch.claim.Delta = refunded, 0, 0
	lines, count := l.lineOfRelease(ch.claim.Rule, ch.claim.Subject)
	lines.WakeFirst(count)
}

// settle changes the charges to the given costs. c is nil if nothing was charged.
func (c *charges) settle(ctx context.Context, costs []int64) error {
	if c == nil {
		return nil
	}
	if len(costs) != len(c.shares) {
		return &RuleError{Argument: "settle", Reason: fmt.Sprintf("found %d costs; expected %d, one for each request", len(costs), len(c.shares))}
	}
	totals, settles := make([]int64, len(c.list)), make([]bool, len(c.list))
	for i, cost := range costs {
		share := c.shares[i]
		switch {
		case share.ruling == skipped:
			continue
		case cost == bridge.Keep:
			cost = share.cost
		case cost < 0:
			return wrongCost(c.list[share.ruling].rule.Name, cost)
		default:
			settles[share.ruling] = true
		}
		totals[share.ruling] += min(cost, maxLimit)
	}
	rules, short, err := c.adjust(ctx, settled, func(ch *charge, i int) (int64, bool) {
		return totals[i], ch.rule.numbers.Kind.Accepts("settle") && settles[i]
	})
	if len(rules) > 0 {
		c.limiter.tell(ctx, EventSettled, c.method, cmp.Or(err, short), rules...)
	}
	return err
}

// adjust brings charges to the stage next. total says which charges change, and to which cost. A charge stays as it is if it has reached that
// stage before. One without permits only reaches the stage, unless it began at a cost of 0 and is settled. If a store has certainly not changed a charge, the
// next adjust tries it again. adjust returns the outcomes of the rules. short says that a rule does not take its whole cost.
func (c *charges) adjust(ctx context.Context, next stage, total func(ch *charge, i int) (int64, bool)) (rules []Outcome, short, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var selected []*charge
	var totals []int64
	var first, last []*engine.Claim // what settlements added goes back last, if the charge itself is not enough
	for i := range c.list {
		ch := &c.list[i]
		cost, wanted := total(ch, i)
		if !wanted || ch.stage >= next {
			continue
		}
		if ch.cost() == 0 && (!ch.noCost || next == refunded) { // there is nothing to give back, but no settlement comes after a refund
			ch.stage = next
			continue
		}
		rules, selected, totals = append(rules, ch.outcome()), append(selected, ch), append(totals, cost)
		delta := min(cost-ch.cost(), ch.claim.MostSettled())
		if delta > 0 {
			ch.added = c.addition(ch, delta)
			first = append(first, ch.added)
			continue
		}
		ch.claim.Delta = max(delta, -ch.claim.Charged)
		first = append(first, &ch.claim)
		if ch.added != nil {
			ch.added.Delta = delta - ch.claim.Delta
			last = append(last, ch.added)
		}
	}
	if err = c.apply(ctx, first); err == nil {
		err = c.apply(ctx, last)
	}
	for i, ch := range selected {
		if err == nil || ch.isDone() {
			ch.stage = next
		}
		if ch.releases() {
			ch.end(c.limiter)
		}
		if rules[i].Cost = ch.cost(); ch.cost() < totals[i] && short == nil {
			short = &RuleError{Rule: ch.rule.Name, Argument: "settle", Reason: fmt.Sprintf(
				"found a cost of %d; charged %d, as a debt lasts at most 24 hours", totals[i], ch.cost())}
		}
	}
	return rules, short, storeError(ctx, c.method, err)
}

// isDone reports whether nothing is left to change.
func (ch *charge) isDone() bool {
	return ch.claim.Delta == 0 && (ch.added == nil || ch.added.Delta == 0)
}

// apply changes charges of one call by their Deltas, in which it leaves what was not done.
func (c *charges) apply(ctx context.Context, claims []*engine.Claim) error {
	claims = slices.DeleteFunc(claims, func(claim *engine.Claim) bool { return claim.Delta == 0 })
	if len(claims) == 0 {
		return nil
	}
	call := engine.Call{Prefix: c.limiter.prefix}
	for _, claim := range claims {
		call.Claims = append(call.Claims, *claim)
	}
	if ctx.Err() != nil { // it ended before this call, so it sets no deadline for it
		var cancel context.CancelFunc
		ctx, cancel = afterCall(ctx)
		defer cancel()
	}
	err := c.limiter.decider.Adjust(ctx, &call)
	for i, claim := range claims {
		if claim.Delta > 0 {
			claim.At, claim.Dated = call.Claims[i].At, call.Claims[i].Dated
		}
		claim.Charged += claim.Delta - call.Claims[i].Delta // another attempt must not repeat this part
		claim.Delta = call.Claims[i].Delta
	}
	return err
}

// addition returns the claim of n permits that a settlement takes beside a charge. They count by the limit that is in force now, except in three
// cases, in which they count by the limit of the charge: an override has changed the window; no limit above 0 is in force; or FailLocalShare has
// divided the limit of the charge.
func (c *charges) addition(ch *charge, n int64) *engine.Claim {
	claim := ch.claim
	claim.Charged, claim.Delta = ch.cost()-ch.claim.Charged, n // an earlier attempt may have taken some
	rule, _, _ := c.limiter.inForce(cmp.Or(ch.rule.base, ch.rule), claim.Subject)
	if rule.numbers.Tag == ch.rule.numbers.Tag && rule.Limit > 0 && (ch.rule.Computed || claim.Limit == ch.rule.Limit) {
		claim.Limit, claim.Burst = rule.Limit, rule.claim.Burst
	}
	return &claim
}

// RefundUnless implements bridge.Taken.
func (c *charges) RefundUnless(ctx context.Context, ok *bool) {
	if *ok {
		return
	}
	back, cancel := afterCall(ctx)
	defer cancel()
	// The wrapped call returns its own error. Only observers see this one.
	_ = c.giveBack(back, EventRefunded, func(ch *charge) bool { return ch.rule.Refund == RefundError })
}

// Settle implements bridge.Taken. Only observers see an error: the results of the wrapped call stay as they are.
func (c *charges) Settle(ctx context.Context, costs ...int64) {
	for i, cost := range costs {
		if cost < 0 && cost != bridge.Keep && c.Applies(i) {
			c.SettleFailed(ctx, i, wrongCost(c.rules[i].label, cost))
			costs[i] = bridge.Keep
		}
	}
	back, cancel := afterCall(ctx)
	defer cancel()
	_ = c.settle(back, costs)
}

// Applies implements bridge.Taken.
func (c *charges) Applies(rule int) bool { return c.shares[rule].ruling != skipped }

// SettleFailed implements bridge.Taken.
func (c *charges) SettleFailed(ctx context.Context, rule int, err error) {
	c.mu.Lock()
	o := c.list[c.shares[rule].ruling].outcome()
	c.mu.Unlock()
	c.limiter.tell(ctx, EventSettled, c.method, c.limiter.discreet(err), o)
}

// Charge is what a call of a wrapper was charged. With it, the call is settled after the method has returned: when a stream has ended, for
// example. If it was charged 100 tokens, Settle with a cost of 130 takes 30 more, and with a cost of 60 gives 40 back. It is safe for
// concurrent use.
type Charge struct {
	charges atomic.Pointer[charges] // nil until a call is admitted
}

// WithCharge returns a context and a Charge. The first call that a wrapper admits under the context fills the Charge. So if a wrapper calls
// another one, the Charge is that of the outer one. Use the context for one call.
func WithCharge(ctx context.Context) (context.Context, *Charge) {
	w := wishesOf(ctx)
	w.charge = new(Charge)
	return w.in(ctx), w.charge
}

// ChargeFrom returns the Charge of [WithCharge], for what the wrapper calls. It returns nil if there is none.
func ChargeFrom(ctx context.Context) *Charge { return wishesOf(ctx).charge }

// Settle changes the charge to what the call really cost, as [Decision.Settle] does, also if ctx has ended. The cost is that of all rules
// with cost=, or of those that are named. Each rule is settled once: its first settlement holds, by Settle or by settle=. If an override gives two
// rules one count, they are settled together, by the first settlement of one of them.
//
// If no call was admitted yet, or a name is that of no rule with cost=, the error is a *RuleError. The other errors are those of
// [Decision.Refund].
func (c *Charge) Settle(ctx context.Context, cost int64, rules ...string) error {
	if c == nil || c.charges.Load() == nil {
		return &RuleError{Argument: "settle", Reason: "the charge is missing; call a wrapper under the context of WithCharge first"}
	}
	if cost < 0 {
		return wrongCost("", cost)
	}
	all := c.charges.Load()
	costs, err := all.costsOf(cost, rules)
	if err != nil {
		return err
	}
	return all.settle(ctx, costs)
}

// fill sets the charge of an admitted call, unless an earlier call has set it. The Charge may be nil.
func (c *Charge) fill(all *charges) {
	if c != nil {
		c.charges.CompareAndSwap(nil, all)
	}
}

func wrongCost(rule string, cost int64) error {
	return &RuleError{Rule: rule, Argument: "settle", Reason: fmt.Sprintf("found a cost of %d; expected 0 or more", cost)}
}

// costsOf returns a cost for each rule of the method: Keep for those that are not settled.
func (c *charges) costsOf(cost int64, names []string) ([]int64, error) {
	var priced []string
	costs := make([]int64, len(c.rules))
	for i, r := range c.rules {
		costs[i] = bridge.Keep
		if !r.priced || !r.accepts("settle") {
			continue
		}
		priced = append(priced, r.label)
		if len(names) == 0 || slices.Contains(names, r.label) {
			costs[i] = cost
		}
	}
	if len(priced) == 0 {
		return nil, &RuleError{Rule: c.method, Argument: "settle", Reason: "cost= is missing in the rules of this method"}
	}
	for _, name := range names {
		if !slices.Contains(priced, name) {
			return nil, &RuleError{Rule: name, Argument: "settle", Reason: fmt.Sprintf(
				"%s has no rule of this name with cost=; expected %s", c.method, strings.Join(priced, " or "))}
		}
	}
	return costs, nil
}
