package wrap

import (
	"context"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Everybody is the subject of a rule without a key.
const Everybody = ""

// Charge is what one rule charges a call.
type Charge = decide.Use

// Cost returns the cost of settle= of the rule with an index. It is Keep if the rule does not apply to the call, or if the cost cannot be
// computed. Then observers see the error.
func (r *Rules) Cost(ctx context.Context, taken *Taken, rule int, expr string, island func() int64) int64 {
	if !taken.Applies(rule) {
		return Keep
	}
	cost, err := Value(r.at(rule), expr, island)
	if err != nil {
		taken.SettleFailed(ctx, rule, err)
		return Keep
	}
	return cost
}

// Keep is a cost that does not settle the rule: its charge stays as it is.
const Keep = decide.Keep

// Taken is the charge of an admitted call.
type Taken = decide.Charges

// Take charges one permit to each rule, and waits if it has to. The subjects are in the order of the rules. Take returns nil if the call is
// admitted. Otherwise it returns an error of package ratelimit, or an error that wraps the context's.
func Take(ctx context.Context, limits *Limits, rules *Rules, subjects ...string) error {
	call := limits.open(rules, false)
	charge := Charge{Cost: 1}
	for _, subject := range subjects {
		charge.Key = subject
		call.Add(&charge)
	}
	_, err := call.Take(ctx)
	return err
}

// TakeCharges is [Take] for rules whose cost, condition, member or limit depends on the call.
func TakeCharges(ctx context.Context, limits *Limits, rules *Rules, charges ...Charge) error {
	_, err := limits.openWith(rules, charges, false).Take(ctx)
	return err
}

// Begin is [TakeCharges] for a call that may give its permits back.
func Begin(ctx context.Context, limits *Limits, rules *Rules, charges ...Charge) (*Taken, error) {
	return limits.openWith(rules, charges, true).Take(ctx)
}

func (l *Limits) openWith(rules *Rules, charges []Charge, givesBack bool) *decide.Call {
	call := l.open(rules, givesBack)
	for i := range charges {
		call.Add(&charges[i])
	}
	return call
}

// Failed tells the limiter's observers that a call is not made because a key, cost or limit could not be computed. It returns err. If the
// limiter hashes subjects, the error leaves out the text of its cause, which may contain a subject.
func Failed(ctx context.Context, limits *Limits, err error) error {
	method := ""
	if e, ok := err.(*ratelimit.KeyError); ok {
		method = e.Method
	}
	return limits.limiter().Failed(ctx, method, err)
}

// AsDeclared is the message of a rule whose message does not depend on the call.
const AsDeclared = ""

// Describe sets the message of a refusal to the one of the rule with the longest delay. messages are in the order of the rules. Describe returns
// other errors unchanged.
func Describe(limits *Limits, err error, messages ...string) error {
	return limits.limiter().Describe(err, messages)
}

// Shown returns the form in which the message of a refusal shows text, which is part of a key: a hash if the limiter hashes subjects, and
// otherwise [Printable] of text.
func Shown(limits *Limits, text string) string {
	if hash, ok := limits.limiter().Shown(text); ok {
		return hash
	}
	return strings.Clone(Printable(text)) // the program may keep the message
}

// ClientIP returns the address that [ratelimit.WithClientIP] put into ctx. It is an error if there is none.
func ClientIP(ctx context.Context) (string, error) { return identity(ctx, decide.ClientIP) }

// UserID returns the user that [ratelimit.WithUserID] put into ctx. It is an error if there is none.
func UserID(ctx context.Context) (string, error) { return identity(ctx, decide.UserID) }

func identity[K ~string](ctx context.Context, what K) (string, error) {
	if ctx != nil { // a stream may have no context
		if s, _ := ctx.Value(what).(string); s != "" {
			return s, nil
		}
	}
	return "", decide.Missing("the context carries no " + what)
}
