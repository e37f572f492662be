// Package bridge lets package wrap and the stores call functions of package ratelimit that users cannot call. Package ratelimit sets the
// variables when it is initialized, so it needs no exported methods for generated code. The package has no logic of its own.
package bridge

import (
	"context"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// Charge is what one rule charges a call.
type Charge struct {
	Key    string // the subject; "" for a rule without a key
	Cost   int64  // permits; with 0 the rule refuses nothing, and charges what a settlement says
	Member string // the member to count, for a rule with Distinct
	Limit  int64  // of a rule with Computed
	Skip   bool   // the rule does not apply to the call
}

// Rules are the prepared rules of one method.
type Rules interface {
	// Rules returns a []ratelimit.Rule with the names that errors and events show.
	Rules() any
	// WithCost notes which rules have cost=, by the names that errors and events show.
	WithCost(rules ...string)
	// Register tells a *ratelimit.Limiter that the method will be called.
	Register(limiter any)
	// Open starts a call of the method on a *ratelimit.Limiter. givesBack says that the caller keeps the charge, to give it back.
	Open(limiter any, givesBack bool) Call
}

// Call is a call of a method that has to be decided. Call Add once for each rule, in their order, and then Take. After that, the Call must not be
// used.
type Call interface {
	// Add sets what the next rule charges.
	Add(charge Charge)

	// Take decides the call, and waits if it has to. It returns the charge of an admitted call, or perhaps nil if the caller keeps nothing.
	Take(ctx context.Context) (Taken, error)
}

// Taken is the charge of an admitted call.
type Taken interface {
	// RefundUnless gives the permits back to the rules with RefundError, unless *ok is true. Defer it, so that it also runs after a panic.
	RefundUnless(ctx context.Context, ok *bool)
	// Release gives the permits of rules that count calls that run back. Defer it, so that it also runs after a panic.
	Release(ctx context.Context)
	// Settle changes the charge to what the call really cost: one cost for each rule, or Keep. It returns no error; observers see errors.
	Settle(ctx context.Context, costs ...int64)
	// Pause pauses the subjects of the rules, those that are Pausable: one duration for each rule, or 0. A pause that ends later stays. It returns
	// no error; a failure of the store is logged.
	Pause(ctx context.Context, pauses ...time.Duration)
	// Applies reports whether the rule with an index applies to the call.
	Applies(rule int) bool
	// SettleFailed reports that the cost of a rule could not be computed. Its charge stays as it is, and observers see the error.
	SettleFailed(ctx context.Context, rule int, err error)
}

// Keep is a cost for Settle that leaves the charge of the rule as it is.
const Keep int64 = -1 << 62

var (
	// Prepare prepares the []ratelimit.Rule of a method, pkg.Type.Method. The error is a *ratelimit.RuleError.
	Prepare func(method string, rules any) (Rules, error)
	// Failed tells the observers of a *ratelimit.Limiter that the charges of a call could not be computed. It returns the error, without the
	// text of its cause if the limiter hashes subjects.
	Failed func(ctx context.Context, limiter any, method string, err error) error
	// Describe gives a refusal the message of the rule with the longest delay.
	Describe func(err error, messages []string) error
	// HashOf returns the hash of a text for the message of a refusal. It reports false if the limiter does not hash subjects.
	HashOf func(err error, text string) (hash string, ok bool)
	// Numbers returns the engine's form of a ratelimit.Rule. The error is a *ratelimit.RuleError.
	Numbers func(rule any) (*engine.Rule, error)
	// View returns a *ratelimit.Limiter through which a console looks at the store of another, and the prefix and the fleet of both.
	View func(limiter any) (view any, prefix string, known *fleet.Fleet)
	// Charges returns when the permits of a ratelimit.Request's count were taken, and for when calls wait, as far as the store of a
	// *ratelimit.Limiter knows.
	Charges func(ctx context.Context, limiter, request any) ([]backend.Charge, error)
)

// Missing is the error of an expression that needs what the context does not carry: a "client IP" or a "user ID".
type Missing string

func (m Missing) Error() string { return "the context carries no " + string(m) }

// identity is a key of a value in a context.
type identity string

// The keys of the values in a context.
const (
	ClientIP identity = "client IP"
	UserID   identity = "user ID"
)

// looking is a key of a value in a context.
type looking string

// Looks is the key of a value in the context of a Peek by a console. Such a Peek does not make the limiter follow settings.
const Looks looking = "looks"
