package ratelimit

import (
	"context"
	"unique"

	"github.com/ratelimit-go/ratelimit/internal/key"
)

// Option changes a limiter that [New] makes.
type Option func(*Limiter)

// DefaultPrefix is what all keys in the store begin with, unless [WithPrefix] says otherwise.
const DefaultPrefix = "ratelimit"

// WithPrefix sets what all keys in the store begin with, instead of [DefaultPrefix]: give each application that shares a
// Redis a prefix of its own. Braces are escaped.
func WithPrefix(prefix string) Option {
	return func(l *Limiter) { l.prefix = unique.Make(key.Escape(prefix)) }
}

// WithFailurePolicy sets what to do while the store fails, for rules that do not say. Of the rules of one call, the
// strictest counts: FailClosed, then FailLocal, then FailOpen.
func WithFailurePolicy(policy FailurePolicy) Option {
	return func(l *Limiter) { l.policy = policy }
}

// WithShadow sets a function that is called, before the call goes on, when rules in shadow mode would have refused it. Many
// goroutines may call it at once, and each call waits for it. Peek does not call it.
func WithShadow(report func(context.Context, *TooManyRequestsError)) Option {
	return func(l *Limiter) { l.shadow = report }
}

// Trigger says that a rule in trigger mode has reached its limit.
type Trigger struct {
	Method string // pkg.Type.Method; "" for a request
	Rule   string // the rule's name
	Key    string // as in Violation
	Limit  int64
	Used   int64 // permits used in the window by now; of one call at most 2*10^15 count
}

// WithTrigger sets a function that is called, before the call goes on, each time the permits used under a rule in trigger
// mode rise from below its limit to the limit or above. Many goroutines may call it at once, and each call waits for it. Peek
// does not call it. Without it such rules count, and nobody hears of it.
func WithTrigger(trigger func(context.Context, Trigger)) Option {
	return func(l *Limiter) { l.trigger = trigger }
}
