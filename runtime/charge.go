package ratelimit

import (
	"context"

	"github.com/ratelimit-go/ratelimit/internal/decide"
)

// Charge is what a call of a wrapper was charged. With it, the call is settled after the method has returned: when a stream has ended, for
// example. If it was charged 100 tokens, Settle with a cost of 130 takes 30 more, and with a cost of 60 gives 40 back. It is safe for
// concurrent use.
type Charge decide.Charge

// WithCharge returns a context and a Charge. The first call that a wrapper admits under the context fills the Charge. So if a wrapper calls
// another one, the Charge is that of the outer one. Use the context for one call.
func WithCharge(ctx context.Context) (context.Context, *Charge) {
	c := new(decide.Charge)
	w := decide.WishesOf(ctx)
	w.Charge = c
	return w.In(ctx), (*Charge)(c)
}

// ChargeFrom returns the Charge of [WithCharge], for what the wrapper calls. It returns nil if there is none.
func ChargeFrom(ctx context.Context) *Charge { return (*Charge)(decide.WishesOf(ctx).Charge) }

// Settle changes the charge to what the call really cost, as [Decision.Settle] does, also if ctx has ended. The cost is that of all rules
// with cost=, or of those that are named. Each rule is settled once: its first settlement holds, by Settle or by settle=. If an override gives two
// rules one count, they are settled together, by the first settlement of one of them.
//
// If no call was admitted yet, or a name is that of no rule with cost=, the error is a *RuleError. The other errors are those of
// [Decision.Refund].
func (c *Charge) Settle(ctx context.Context, cost int64, rules ...string) error {
	charges := (*decide.Charge)(c).Charges()
	if charges == nil {
		return &RuleError{Argument: "settle", Reason: "no call was admitted under the context of WithCharge"}
	}
	return charges.SettleRules(ctx, cost, rules)
}
