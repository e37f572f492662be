// Package bridge is what package wrap and the stores ask of package ratelimit, and nobody else may. Package ratelimit sets the variables
// when it is initialized, so that it needs no exported method for generated code. Nothing here decides anything.
package bridge

import (
	"context"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Charge is what one rule takes of a call.
type Charge struct {
	Key    string // the subject; "" for a rule without a key
	Cost   int64  // permits; with 0 the rule does not apply
	Member string // what is counted, for a rule with Distinct
	Limit  Limit  // instead of the rule's own, unless it is zero
}

// Limit is a number of permits per window that a call brings along. The zero Limit is none.
type Limit struct {
	Permits int64
	Given   bool
}

// Rules are the prepared rules of one method.
type Rules interface {
	// Rules returns the []ratelimit.Rule with the names that they got.
	Rules() any
	// Open starts a call of the method on a *ratelimit.Limiter.
	Open(limiter any) Call
	// TakeAtOnce charges one permit to each of the method's few rules if there is nothing else to do, and reports whether it did. If
	// not, Open a call.
	TakeAtOnce(ctx context.Context, limiter any, subjects [Few]string) bool
}

// Few is how many rules [Rules.TakeAtOnce] takes. Subjects in an array stay on the caller's stack.
const Few = 4

// Call is a call of a method that is to be decided. Ask is called once for each rule, in their order, and then Take or Begin,
// after which the Call must not be used.
type Call interface {
	// Ask says what the next rule takes.
	Ask(charge Charge)
	// Take decides the call, and waits where the rules say so.
	Take(ctx context.Context) error
	// Begin is Take for a call that may give its permits back.
	Begin(ctx context.Context) (Taken, error)
}

// Taken is what an admitted call took of its rules.
type Taken interface {
	// RefundUnless gives the permits back to the rules with RefundError, unless ok is true by then. It is deferred, so that it
	// also sees a panic.
	RefundUnless(ctx context.Context, ok *bool)
	// Settle makes the charge what the call really cost: one cost for each rule, or Keep. It never fails; observers see what does.
	Settle(ctx context.Context, costs ...int64)
	// SettleFailed says that a cost could not be computed. The charge stays, and observers see the error.
	SettleFailed(ctx context.Context, err error)
}

// Keep is the cost of a rule whose charge stays as it is.
const Keep int64 = -1 << 62

var (
	// Prepare prepares the []ratelimit.Rule of a method, pkg.Type.Method. The error is a *ratelimit.RuleError.
	Prepare func(method string, rules any) (Rules, error)
	// Failed tells the observers of a *ratelimit.Limiter of a call of a method whose charges could not be computed, and returns the
	// error without what must not be shown.
	Failed func(ctx context.Context, limiter any, method string, err error) error
	// Describe gives a refusal the message of the rule that it is about.
	Describe func(err error, messages []string) error
	// Hashed returns the hash of a key expression for the message of a refusal, if the limiter hashes subjects.
	Hashed func(err error, text string) (hash string, ok bool)
	// Numbers returns a ratelimit.Rule as stores know it. The error is a *ratelimit.RuleError.
	Numbers func(rule any) (*engine.Rule, error)
)

// identity is a key of a value in a context.
type identity string

// The keys of what a context carries.
const (
	ClientIP identity = "client IP"
	UserID   identity = "user ID"
)
