package ratelimit

import (
	"context"
	"log/slog"

	"github.com/ratelimit-go/ratelimit/internal/key"
)

// Option changes a limiter that [New] makes.
type Option func(*Limiter)

// DefaultPrefix is the prefix of all keys in the store, unless [WithPrefix] sets another.
const DefaultPrefix = "ratelimit"

// WithPrefix sets the prefix of all keys in the store, instead of [DefaultPrefix]. Applications that share a Redis need different
// prefixes. Braces, percent signs and unprintable characters are escaped. The end of a prefix of more than 128 bytes is replaced by a hash.
func WithPrefix(prefix string) Option {
	return func(l *Limiter) { l.prefix = key.Escape(prefix) }
}

// WithFailurePolicy sets what happens to calls while the store fails, for rules without a policy of their own. The default is FailClosed.
// If the rules of one call differ, the strictest policy holds: FailClosed, then FailLocal, then FailOpen.
func WithFailurePolicy(policy FailurePolicy) Option {
	return func(l *Limiter) { l.policy = policy }
}

// WithLogger sets where the limiter logs, instead of slog.Default(). It logs one line when the store is lost, when the store is back (no
// call has failed for five seconds) with how long it failed and what became of the calls meanwhile, when it cannot read an override, and when a server lacks functions or a permission. WithLogger panics if
// the logger is nil.
func WithLogger(logger *slog.Logger) Option {
	if logger == nil {
		panic("ratelimit.WithLogger: the logger is nil")
	}
	return func(l *Limiter) { l.logger = logger }
}

// Trigger describes a rule in trigger mode that has reached its limit. For example, a rule has a Limit of 100, and 98 permits are used. A call
// that takes 3 is a Trigger with Limit 100 and Used 101, and later calls of the window are none.
type Trigger struct {
	Method string // pkg.Type.Method; "" for requests
	Rule   string // the rule's name
	Key    string // as in Violation
	Limit  int64  // permits per window
	Used   int64  // permits used in the window by now; one call counts for at most 2*10^15
}

// WithTrigger sets a function that is called each time a call raises the used permits of a rule in trigger mode from below its limit to the
// limit or above. The call goes on when the function returns. Many goroutines may call the function at the same time. Peek does not call
// it. Without this option, rules in trigger mode only count. WithTrigger panics if the function is nil.
func WithTrigger(trigger func(context.Context, Trigger)) Option {
	if trigger == nil {
		panic("ratelimit.WithTrigger: the function is nil")
	}
	return func(l *Limiter) { l.trigger = trigger }
}
