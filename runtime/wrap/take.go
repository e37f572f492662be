package wrap

import (
	"context"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

// Everybody is the subject of a rule without a key.
const Everybody = ""

// Charge is what one rule takes of a call.
type Charge = bridge.Charge

// Limit is a number of permits per window that a call brings along. The zero Limit is none: the rule's own holds.
type Limit = bridge.Limit

// LimitOf returns the limit of n permits. A call that brings a limit which its rule could not have fails with a
// *ratelimit.KeyError.
func LimitOf(n int64) Limit { return Limit{Permits: n, Given: true} }

// Keep stands for the cost of a rule that is not settled: its charge stays as it is.
const Keep = bridge.Keep

// Taken is what an admitted call took of its rules.
type Taken = bridge.Taken

// Take charges one permit to each rule, for the subjects in the order of the rules, and waits where the rules say so. It returns
// nil if the call is admitted, else an error of package ratelimit or the context's, wrapped.
func Take(ctx context.Context, l *ratelimit.Limiter, rules *Rules, subjects ...string) error {
	if n := len(subjects); n == len(rules.rules) && n <= bridge.Few {
		var few [bridge.Few]string
		copy(few[:], subjects)
		if rules.prepared.TakeAtOnce(ctx, l, few) {
			return nil
		}
	}
	call := rules.prepared.Open(l)
	for _, subject := range subjects {
		call.Ask(Charge{Key: subject, Cost: 1})
	}
	return call.Take(ctx)
}

// TakeCharges is [Take] for rules with a cost, a condition, a member or a limit of their own in each call.
func TakeCharges(ctx context.Context, l *ratelimit.Limiter, rules *Rules, charges ...Charge) error {
	return ask(l, rules, charges).Take(ctx)
}

// Begin is [TakeCharges] for a call that may give its permits back.
func Begin(ctx context.Context, l *ratelimit.Limiter, rules *Rules, charges ...Charge) (Taken, error) {
	return ask(l, rules, charges).Begin(ctx)
}

func ask(l *ratelimit.Limiter, rules *Rules, charges []Charge) bridge.Call {
	call := rules.prepared.Open(l)
	for _, charge := range charges {
		call.Ask(charge)
	}
	return call
}

// Failed tells the limiter's observers that a call is not made because a key, cost or limit could not be computed. It returns err. If
// the limiter hashes subjects, the text of the cause is left out, as a subject may be in it.
func Failed(ctx context.Context, l *ratelimit.Limiter, err error) error {
	method := ""
	if e, ok := err.(*ratelimit.KeyError); ok {
		method = e.Method
	}
	return bridge.Failed(ctx, l, method, err)
}

// Describe gives a refusal the message of the rule that it is about. The messages stand in the order of the rules; "" leaves the
// rule's own. Other errors pass unchanged.
func Describe(err error, messages ...string) error { return bridge.Describe(err, messages) }

// Shown returns a caller's text that stands in a key, fit for the message of a refusal: hashed if the limiter hashes subjects, else as
// [Printable] does.
func Shown(err error, text string) string {
	if hash, ok := bridge.Hashed(err, text); ok {
		return hash
	}
	return Printable(text)
}

// ClientIP returns what [ratelimit.WithClientIP] put into ctx, or "".
func ClientIP(ctx context.Context) string {
	s, _ := ctx.Value(bridge.ClientIP).(string)
	return s
}

// UserID returns what [ratelimit.WithUserID] put into ctx, or "".
func UserID(ctx context.Context) string {
	s, _ := ctx.Value(bridge.UserID).(string)
	return s
}
