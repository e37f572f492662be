package ratelimit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

// Charge is what a call of a wrapper was charged. With it, the call is settled after the method has returned: when a stream has ended, for
// example. If it was charged 100 tokens, Settle with a cost of 130 takes 30 more, and with a cost of 60 gives 40 back. It is safe for concurrent
// use.
type Charge struct {
	mu    sync.Mutex
	kept  *charged // nil until a call is admitted
	rules []*prepared
}

type chargeKey struct{}

// WithCharge returns a context and a Charge. The first call that a wrapper admits under the context fills the Charge. So if a wrapper calls
// another one, the Charge is that of the outer one. Use the context for one call.
func WithCharge(ctx context.Context) (context.Context, *Charge) {
	c := new(Charge)
	return context.WithValue(ctx, chargeKey{}, c), c
}

// ChargeFrom returns the Charge of [WithCharge], for what the wrapper calls. It returns nil if there is none.
func ChargeFrom(ctx context.Context) *Charge {
	c, _ := ctx.Value(chargeKey{}).(*Charge)
	return c
}

// Settle changes the charge to what the call really cost, as [Decision.Settle] does, also if ctx has ended. The cost is that of all rules
// with cost=, or of those that are named. Each rule is settled once: its first settlement holds, by Settle or by settle=.
//
// If no call was admitted yet, or a name is that of no rule with cost=, the error is a *RuleError. The other errors are those of
// [Decision.Refund].
func (c *Charge) Settle(ctx context.Context, cost int64, rules ...string) error {
	kept, of := c.content()
	if kept == nil {
		return &RuleError{Argument: "settle", Reason: "the charge is missing; call a wrapper under the context of WithCharge first"}
	}
	if cost < 0 {
		return wrongCost("", cost)
	}
	costs, err := costsOf(kept.method, of, cost, rules)
	if err != nil {
		return err
	}
	return kept.settle(ctx, costs)
}

func (c *Charge) content() (*charged, []*prepared) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept, c.rules
}

// fill sets the charge of an admitted call, unless an earlier call has set it.
func (c *Charge) fill(kept *charged, rules []*prepared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept, c.rules = kept, rules
	}
}

func wrongCost(rule string, cost int64) error {
	return &RuleError{Rule: rule, Argument: "settle", Reason: fmt.Sprintf("found a cost of %d; expected 0 or more", cost)}
}

// costsOf returns a cost for each rule: Keep for those that are not settled.
func costsOf(method string, rules []*prepared, cost int64, names []string) ([]int64, error) {
	var priced []string
	costs := make([]int64, len(rules))
	for i, r := range rules {
		costs[i] = bridge.Keep
		if !r.priced || !r.takes("settle") {
			continue
		}
		priced = append(priced, r.shown)
		if len(names) == 0 || slices.Contains(names, r.shown) {
			costs[i] = cost
		}
	}
	if len(priced) == 0 {
		return nil, &RuleError{Rule: method, Argument: "settle", Reason: "cost= is missing in the rules of this method"}
	}
	for _, name := range names {
		if !slices.Contains(priced, name) {
			return nil, &RuleError{Rule: name, Argument: "settle", Reason: fmt.Sprintf(
				"%s has no rule of this name with cost=; expected %s", method, strings.Join(priced, " or "))}
		}
	}
	return costs, nil
}
