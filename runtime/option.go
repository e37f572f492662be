package ratelimit

import (
	"context"
	"log/slog"

	"github.com/ratelimit-go/ratelimit/internal/key"
)

// Option changes a limiter that [New] makes.
type Option func(*Limiter)

// DefaultPrefix is what all keys in the store begin with, unless [WithPrefix] says otherwise.
const DefaultPrefix = "ratelimit"

// WithPrefix sets what all keys in the store begin with, instead of [DefaultPrefix]. Applications that share a Redis need different
// prefixes. Braces, percent signs and unprintable characters are escaped; over 128 bytes the rest is replaced by a hash.
func WithPrefix(prefix string) Option {
	return func(l *Limiter) { l.prefix = key.Escape(prefix) }
}

// WithFailurePolicy sets what happens to calls while the store fails, for rules without a policy of their own. The default is FailClosed.
// If the rules of one call differ, the strictest policy holds: FailClosed, then FailLocal, then FailOpen.
func WithFailurePolicy(policy FailurePolicy) Option {
	return func(l *Limiter) { l.policy = policy }
}

// WithLogger sets where the limiter logs, instead of slog.Default(). It logs one line when the state of something changes: the
// store is lost, the store is back (when no call has failed for five seconds), an override is not understood, a server lacks functions or a
// permission. A nil logger panics.
func WithLogger(logger *slog.Logger) Option {
	if logger == nil {
		panic("ratelimit.WithLogger: the logger is nil")
	}
	return func(l *Limiter) { l.logger = logger }
}

// Trigger says that a rule in trigger mode has reached its limit.
type Trigger struct {
	Method string // pkg.Type.Method; "" for requests
	Rule   string // the rule's name
	Key    string // as in Violation
	Limit  int64  // permits per window
	Used   int64  // permits used in the window by now; one call counts for at most 2*10^15
}

// WithTrigger sets a function that is called, before the call goes on, each time the permits used under a rule in trigger mode rise from
// below its limit to the limit or above. Many goroutines may call it at once, and the call waits for it. Peek does not call it. Without
// this option, rules in trigger mode only count. A nil function panics.
func WithTrigger(trigger func(context.Context, Trigger)) Option {
	if trigger == nil {
		panic("ratelimit.WithTrigger: the function is nil")
	}
	return func(l *Limiter) { l.trigger = trigger }
}
