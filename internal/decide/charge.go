package decide

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Keep is a cost for Settle that leaves the charge of the rule as it is.
const Keep int64 = -1 << 62

// Charges are the charges of an admitted call. The charge of each rule can be settled once, and given back once, also after it was settled.
type Charges struct {
	limiter *Limiter
	method  *Method // nil for requests
	rules   int     // of the method, or requests
	place   int64   // when the place of a call that reserved comes: a Unix time in microseconds, by the limiter's clock; else 0

	mu     sync.Mutex
	list   []charge
	joined []joined
	ended  bool // the call is over: it takes no more permits
}

// charge is the charge of one count. A rule that refuses in shadow mode has charged nothing, and no settlement charges it.
type charge struct {
	part          // what the call took
	more  []part  // what was taken later, the newest last: see add.go. A settlement adds one, too
	index int     // of the rule in its method, or of the request
	own   int64   // the cost of the rule itself, without those that have joined its count
	given int64   // the limit that the call brought, for a rule with Computed
	key   *string // the key of which the claim's subject is a hash; nil if it is none

	stage  stage
	noCost bool // the call began at a cost of 0
}

// part is what was taken from one count at one time.
type part struct {
	rule  *Rule
	claim engine.Claim
	by    holder
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
	sum := ch.claim.Charged
	for i := range ch.more {
		sum += ch.more[i].claim.Charged
	}
	return sum
}

// parts returns the parts of the charge, the newest first.
func (ch *charge) parts() iter.Seq[*part] {
	return func(yield func(*part) bool) {
		for i := len(ch.more) - 1; i >= 0; i-- {
			if !yield(&ch.more[i]) {
				return
			}
		}
		yield(&ch.part)
	}
}

// unchanged describes a charge that does not change.
func (ch *charge) unchanged() Changed {
	return Changed{Rule: ch.rule, Subject: ch.claim.Subject, Limit: ch.claim.Limit, Before: ch.cost(), After: ch.cost()}
}

// Charges returns the charges of the call. The call is pooled, so they have memory of their own.
func (c *Call) Charges() *Charges {
	var all *Charges
	if len(c.Asked) == 1 { // as in most calls; this saves them an allocation
		own := new(struct {
			Charges
			list [1]charge
		})
		all, own.Charges.list = &own.Charges, own.list[:]
	} else {
		all = &Charges{list: make([]charge, len(c.Asked))}
	}
	all.limiter, all.method, all.rules, all.joined = c.limiter, c.method, c.next, slices.Clone(c.joined)
	if c.Reserves {
		all.place = c.limiter.store.Time().Add(c.waited).UnixMicro()
	}
	for i := range c.Asked {
		a, ch := &c.Asked[i], &all.list[i]
		ch.part, ch.index, ch.own, ch.given = part{a.Rule, *a.Claim, c.by}, a.Index, a.own, a.given
		claim := &ch.claim
		if i > 0 && claim.Subject == c.Asked[i-1].Claim.Subject { // as in most calls; one copy serves
			claim.Subject, claim.Member = all.list[i-1].claim.Subject, strings.Clone(claim.Member)
		} else {
			claim.KeepTexts()
		}
		ch.key = c.limiter.keyOf(a)
	}
	for _, ch := range c.noCost {
		all.add(ch)
	}
	return all
}

// keyOf returns the key of a charge whose subject is a hash of it, or nil. The hash does not tell in which networks the key is.
func (l *Limiter) keyOf(a *Asked) *string {
	if !l.hashes(a.Rule) {
		return nil
	}
	text := strings.Clone(a.text)
	return &text
}

// text returns the key of the charge, from which one can say in which networks it is.
func (ch *charge) text() string {
	if ch.key != nil {
		return *ch.key
	}
	return ch.claim.Subject
}

// add adds a charge that began at a cost of 0. It joins an earlier charge on the same count.
func (c *Charges) add(begun charge) {
	same := func(ch charge) bool { return ch.claim.Subject == begun.claim.Subject && ch.rule.countsWith(begun.rule) }
	if i := slices.IndexFunc(c.list, same); i >= 0 {
		c.joined = append(c.joined, joined{index: begun.index, to: i})
	} else {
		c.list = append(c.list, begun)
	}
}

// of returns the index of the charge of a rule, or -1 if the rule does not apply. It reads only what never changes.
func (c *Charges) of(rule int) int {
	for i := range c.list {
		if c.list[i].index == rule {
			return i
		}
	}
	for i := range c.joined {
		if c.joined[i].index == rule {
			return c.joined[i].to
		}
	}
	return -1
}

// own returns what a rule that applies costs itself. The charges must be locked.
func (c *Charges) own(rule int) *int64 {
	for i := range c.joined {
		if j := &c.joined[i]; j.index == rule {
			return &j.cost
		}
	}
	return &c.list[c.of(rule)].own
}

// Refund gives all charges back. c is nil if nothing was charged.
func (c *Charges) Refund(ctx context.Context) error {
	return c.giveBack(ctx, Refunded, func(*charge) bool { return true })
}

// ReleaseNow gives back the permits that the call releases when it ends. c is nil if nothing was charged.
func (c *Charges) ReleaseNow(ctx context.Context) error {
	c.End()
	return c.giveBack(ctx, Released, (*charge).releases)
}

// End notes that the call is over. c is nil if nothing was charged.
func (c *Charges) End() {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
	}
}

// Release is ReleaseNow for a wrapper: defer it, so that it also runs after a panic. Only observers see an error.
func (c *Charges) Release(ctx context.Context) {
	back, cancel := afterCall(ctx)
	defer cancel()
	_ = c.ReleaseNow(back)
}

// giveBack gives back the charges that wanted selects. c is nil if nothing was charged.
func (c *Charges) giveBack(ctx context.Context, kind EventKind, wanted func(*charge) bool) error {
	if c == nil {
		return nil
	}
	changed, err := c.takeBack(ctx, wanted)
	if len(changed) > 0 {
		c.limiter.Tell(ctx, kind, c.method.name(), err, changed...)
	}
	return err
}

// takeBack is giveBack without the observers. They may change the charges, so the charges are not locked when observers are told.
func (c *Charges) takeBack(ctx context.Context, wanted func(*charge) bool) (changed []Changed, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, _, err = c.adjust(ctx, refunded, func(ch *charge, _ int) (int64, bool) { return 0, wanted(ch) })
	return changed, err
}

// releases reports whether the call that was charged releases the permits when it ends.
func (ch *charge) releases() bool { return ch.rule.Row.Releases }

// end notes that the call is over: its permits are given back, or the store goes on trying. end wakes the first call of this process that waits
// for them.
func (ch *charge) end(l *Limiter) {
	ch.stage, ch.claim.Charged, ch.claim.Delta = refunded, 0, 0
	waiting.WakeFirst(l.released(ch.rule, ch.claim.Subject))
}

// SettleAll changes the charges to the given costs, one for each rule or request. c is nil if nothing was charged.
func (c *Charges) SettleAll(ctx context.Context, costs []int64) error {
	if c == nil {
		return nil
	}
	if len(costs) != c.rules {
		return c.limiter.public.RuleError("", "settle", fmt.Sprintf("found %d costs; expected %d, one for each request", len(costs), c.rules))
	}
	changed, short, err := c.settleTo(ctx, costs)
	if len(changed) > 0 {
		c.limiter.Tell(ctx, Settled, c.method.name(), cmp.Or(err, short), changed...)
	}
	return err
}

// settleTo is SettleAll without the observers, for the same reason as in takeBack.
func (c *Charges) settleTo(ctx context.Context, costs []int64) (changed []Changed, short, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	totals, settles := make([]int64, len(c.list)), make([]bool, len(c.list))
	for i, cost := range costs {
		at := c.of(i)
		switch {
		case at < 0:
			continue
		case cost == Keep:
			cost = *c.own(i)
		case cost < 0:
			return nil, nil, c.limiter.wrongCost(c.list[at].rule.Numbers.Name, cost)
		default:
			settles[at] = true
		}
		totals[at] += min(cost, engine.MaxLimit)
	}
	return c.adjust(ctx, settled, func(ch *charge, i int) (int64, bool) {
		return totals[i], ch.rule.Numbers.Kind.Accepts("settle") && settles[i]
	})
}

// adjust brings charges to the stage next. total says which charges change, and to which cost. If a store has certainly not changed a charge, the
// next adjust tries it again. adjust returns the outcomes of the rules. short says that a rule does not take its whole cost. The charges must be
// locked.
func (c *Charges) adjust(ctx context.Context, next stage, total func(ch *charge, i int) (int64, bool)) (changed []Changed, short, err error) {
	var selected []*charge
	var totals []int64
	var parts []*part
	for i := range c.list {
		ch := &c.list[i]
		cost, wanted := total(ch, i)
		if !wanted || ch.stage >= next {
			continue
		}
		settlesNoCost := ch.noCost && next == settled
		if ch.cost() == 0 && !settlesNoCost { // there is nothing to give back, but no settlement comes after a refund
			ch.stage = next
			continue
		}
		changed, selected, totals = append(changed, ch.unchanged()), append(selected, ch), append(totals, cost)
		delta := min(cost-ch.cost(), ch.claim.MostSettled())
		if delta > 0 {
			ch.more = append(ch.more, c.addition(ch))
		}
		for p := range ch.parts() { // what goes back goes from the newest
			p.claim.Delta = max(delta, -p.claim.Charged)
			parts, delta = append(parts, p), min(0, delta-p.claim.Delta)
		}
	}
	isUndone := next == refunded && c.place > 0 && c.limiter.store.Time().UnixMicro() < c.place // as if it gave up waiting
	err = c.apply(ctx, parts, isUndone)
	for i, ch := range selected {
		if err == nil || ch.isDone() {
			ch.stage = next
		}
		ch.more = slices.DeleteFunc(ch.more, func(p part) bool { return p.claim.Charged == 0 })
		if ch.releases() {
			ch.end(c.limiter)
		}
		if changed[i].After = ch.cost(); ch.cost() < totals[i] && short == nil {
			short = c.limiter.public.RuleError(ch.rule.Numbers.Name, "settle", fmt.Sprintf(
				"found a cost of %d; charged %d, as a debt lasts at most 24 hours", totals[i], ch.cost()))
		}
	}
	return changed, short, c.limiter.StoreError(ctx, c.method.name(), err)
}

// isDone reports whether nothing is left to change.
func (ch *charge) isDone() bool {
	for p := range ch.parts() {
		if p.claim.Delta != 0 {
			return false
		}
	}
	return true
}

// apply changes parts of charges by their Deltas, in which it leaves what was not done. One step changes one part of each count, of one holder.
// isUndone says that the call is not made.
func (c *Charges) apply(ctx context.Context, parts []*part, isUndone bool) error {
	parts = slices.DeleteFunc(parts, func(p *part) bool { return p.claim.Delta == 0 })
	if len(parts) == 0 {
		return nil
	}
	change := c.limiter.Change(engine.Charges)
	change.by, change.Rollback = parts[0].by, isUndone
	var now, later []*part
	for _, p := range parts {
		if p.by != change.by || change.Put(p.rule, p.claim) != nil {
			later = append(later, p)
		} else {
			now = append(now, p)
		}
	}
	if ctx.Err() != nil { // it ended before this call, so it sets no deadline for it
		var cancel context.CancelFunc
		ctx, cancel = afterCall(ctx)
		defer cancel()
	}
	err := change.Adjust(ctx)
	for i, p := range now {
		claim, done := &p.claim, &change.Claims[i]
		if claim.Delta > 0 {
			claim.At, claim.Dated = done.At, done.Dated
		}
		claim.Charged += claim.Delta - done.Delta // another attempt must not repeat this part
		claim.Delta = done.Delta
	}
	if err != nil {
		later = slices.DeleteFunc(later, func(p *part) bool { return p.by == change.by })
	}
	return printable.Join(err, c.apply(ctx, later, isUndone))
}

// addition returns the part that a settlement takes beside a charge. It counts by the limit that is in force now, except in three cases, in which it
// counts by the limit of the charge: an override has changed the window; no limit above 0 is in force; or FailLocalShare has
// divided the limit of the charge.
func (c *Charges) addition(ch *charge) part {
	p := ch.part
	claim := &p.claim
	claim.Charged = 0
	rule := c.limiter.InForce(cmp.Or(ch.rule.Base, ch.rule), ch.text(), claim.Subject)
	if rule.Numbers.Tag == ch.rule.Numbers.Tag && rule.Limit > 0 && (ch.rule.Computed || claim.Limit == ch.rule.Limit) {
		claim.Limit, claim.Burst = rule.Limit, rule.Ask.Burst
	}
	return p
}

// RefundUnless gives the permits back to the rules that refund, unless *ok is true. Defer it, so that it also runs after a panic.
func (c *Charges) RefundUnless(ctx context.Context, ok *bool) {
	if *ok {
		return
	}
	back, cancel := afterCall(ctx)
	defer cancel()
	// The wrapped call returns its own error. Only observers see this one.
	_ = c.giveBack(back, Refunded, func(ch *charge) bool { return ch.rule.Refunds })
}

// Settle changes the charges to what the call really cost: one cost for each rule, or Keep. Only observers see an error: the results of the
// wrapped call stay as they are.
func (c *Charges) Settle(ctx context.Context, costs ...int64) {
	for i, cost := range costs {
		if cost < 0 && cost != Keep && c.Applies(i) {
			c.SettleFailed(ctx, i, c.limiter.wrongCost(c.method.rules.All[i].Label, cost))
			costs[i] = Keep
		}
	}
	back, cancel := afterCall(ctx)
	defer cancel()
	_ = c.SettleAll(back, costs)
}

// Applies reports whether the rule with an index applies to the call.
func (c *Charges) Applies(rule int) bool {
	return c.of(rule) >= 0
}

// SettleFailed reports that the cost of a rule could not be computed. Its charge stays as it is, and observers see the error.
func (c *Charges) SettleFailed(ctx context.Context, rule int, err error) {
	c.mu.Lock()
	changed := c.list[c.of(rule)].unchanged()
	c.mu.Unlock()
	c.limiter.Tell(ctx, Settled, c.method.name(), c.limiter.public.Discreet(c.limiter, err), changed)
}

// settles reports whether a Charge settles the rule, and adds to it.
func (r *Rule) settles() bool { return r.Priced && r.Numbers.Kind.Accepts("settle") }

// costMissing returns the error of a method without a rule that settles. what the caller wants is an argument of the error.
func (c *Charges) costMissing(what string) error {
	return c.limiter.public.MethodError(c.method.name(), what, "cost= is missing in the rules of this method")
}

// Charge is what a call of a wrapper was charged. Package ratelimit has it as a type of its own.
type Charge struct {
	charges atomic.Pointer[Charges] // nil until a call is admitted
}

// set sets the charge of an admitted call, unless an earlier call has set it. The Charge may be nil.
func (c *Charge) set(all *Charges) {
	if c != nil {
		c.charges.CompareAndSwap(nil, all)
	}
}

// Charges returns the charges of the call, or nil if none was admitted yet. The Charge may be nil.
func (c *Charge) Charges() *Charges {
	if c == nil {
		return nil
	}
	return c.charges.Load()
}

// SettleRules changes the charges of the rules with cost= to a cost, or of those that are named.
func (c *Charges) SettleRules(ctx context.Context, cost int64, names []string) error {
	if cost < 0 {
		return c.limiter.public.MethodError(c.method.name(), "settle", negative(cost))
	}
	costs, err := c.costsOf(cost, names)
	if err != nil {
		return err
	}
	return c.SettleAll(ctx, costs)
}

func (l *Limiter) wrongCost(rule string, cost int64) error {
	return l.public.RuleError(rule, "settle", negative(cost))
}

// negative says that a cost is negative.
func negative(cost int64) string { return fmt.Sprintf("found a cost of %d; expected 0 or more", cost) }

// costsOf returns a cost for each rule of the method: Keep for those that are not settled.
func (c *Charges) costsOf(cost int64, names []string) ([]int64, error) {
	var priced []string
	method := c.method.rules
	costs := make([]int64, len(method.All))
	for i, r := range method.All {
		costs[i] = Keep
		if !r.settles() {
			continue
		}
		priced = append(priced, r.Label)
		if len(names) == 0 || slices.Contains(names, r.Label) {
			costs[i] = cost
		}
	}
	if len(priced) == 0 {
		return nil, c.costMissing("settle")
	}
	for _, name := range names {
		if !slices.Contains(priced, name) {
			return nil, c.limiter.public.RuleError(name, "settle", fmt.Sprintf(
				"%s has no rule of this name with cost=; expected %s", method.Method, strings.Join(priced, " or ")))
		}
	}
	return costs, nil
}
