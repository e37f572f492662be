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
		return c.notAdmitted("settle")
	}
	return charges.SettleRules(ctx, cost, rules)
}

// Add takes n more permits for a call that runs, from every rule with cost=, or from none. Of the rules of httplimit.Middleware it takes them from
// all. For example, a call that streams an answer was charged 500 tokens. Before it sends the 501st, it adds 500 more. Rules that are settled or
// refunded take part no more. [Charge.Settle] later says what the whole call has cost, with what was added: 700 gives 300 of these 1000 back.
//
// Add is one decision of the store, by the limits that are in force then. It refuses as a call does, also if the key is blocked or paused by now:
// the error is a *TooManyRequestsError, with the violations, the delay and the message, which is "Too many requests." if message= has expressions.
// Nothing is taken then, and the call itself goes on: the program decides how to end it. Add never waits, and its refusal begins no block.
// Observers see an [EventAdded]. It is no call: statistics do not count it. While the store fails, the failure policies of the rules decide.
//
// A charge keeps the times of 64 Adds. What later ones take counts as taken at the time of the 64th. A settlement for less, a refund and
// refund=error give back the newest permits first. In a sliding window, of permits that were taken later than the 64th Add some may stay until
// they leave the window.
//
// If n is below 1, if no call was admitted yet, if no rule has cost=, or if the call has ended, the error is a *RuleError. A call has ended when all
// its rules with cost= are settled or refunded, when its permits of a rule with [Concurrency] have come back, and when the handler of
// httplimit.Middleware, or the service behind grpclimit.StreamServerInterceptor, has returned. If n is more than a rule can ever admit, the error is
// a *NeverAdmissibleError. Otherwise it is a *StoreError, or wraps the context's.
//
// Calls of Add for one Charge go one after the other.
func (c *Charge) Add(ctx context.Context, n int64) error {
	charges := (*decide.Charge)(c).Charges()
	if charges == nil {
		return c.notAdmitted("add")
	}
	return charges.Add(ctx, n)
}

func (c *Charge) notAdmitted(what string) *RuleError {
	if c == nil {
		return &RuleError{Argument: what, Reason: "there is no Charge in this context; call WithCharge before the wrapper"}
	}
	return &RuleError{Argument: what, Reason: "no call was admitted under the context of WithCharge"}
}
