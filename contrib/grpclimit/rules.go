package grpclimit

import (
	"context"
	"strconv"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// SkipRules is the error of a key function whose rules do not count for the call: it is neither limited nor charged by them. A key function of
// [WithRules], [WithMessageRules] or [WithLimits] returns it for health checks, for example, or for methods that have rules of their own.
var SkipRules = wrap.ErrSkip

// ClientIP is a key function. It returns the client's address, which the interceptors of servers put into the context. It is an error if there is
// none, as on a Unix socket: rules answer it with Internal.
func ClientIP(ctx context.Context, _ string) (string, error) { return wrap.ClientIP(ctx) }

// UserID is a key function. It returns the user, which the interceptors of servers put into the context: see [WithUserID]. It is an error if there
// is none: rules answer it with Internal.
func UserID(ctx context.Context, _ string) (string, error) { return wrap.UserID(ctx) }

// WithRules limits the calls of a server by rules, as httplimit.Middleware limits HTTP requests. All rules count for the key of the call, which the
// function key returns: [ClientIP], [UserID], or a function of yours. If key is nil, all calls share the permits. The context has the client's
// address and the user. The method is a full one, such as /grpc.health.v1.Health/Check: rules count for all methods of the server, also health
// checks and reflection, except where the function returns [SkipRules]. Any other error of it, or an empty key, ends the call as a
// *ratelimit.KeyError: with InvalidArgument, or with Internal if the error wraps [ratelimit.ErrInternal].
//
// For example, a client may make ten calls a second, each of which waits for up to a second:
//
//	grpclimit.WithRules(limiter, grpclimit.ClientIP, []ratelimit.Rule{{Name: "calls", Limit: 10, Per: time.Second, Wait: time.Second}})
//
// A call that is refused does not reach its handler: it ends with the status of [Error]. A stream takes its permits when it begins. A rule with
// Concurrency gets its permit back when the handler returns, also by a panic.
//
// The rules of a limited service count after these, and what these took stays taken if the service's rules refuse. So it does with several
// WithRules, which count in their order. Give each rule a Name: rules of one name and window share their counts, in all WithRules and in both
// interceptors.
//
// WithRules panics if there is no rule, if a rule is not valid, if it has Distinct, Computed or Every, because a call has no member, limit or anchor,
// or if the limiter is nil.
func WithRules(
	limiter *ratelimit.Limiter, key func(ctx context.Context, method string) (string, error), rules []ratelimit.Rule,
) Option {
	all := wrap.NewKeyed("grpclimit.WithRules", limiter, key, rules)
	return func(c *caller) { c.calls = append(c.calls, all) }
}

// WithMessageRules limits the messages that clients send in streams: each one that the handler receives takes a permit of each rule. The key
// function is that of [WithRules], and is asked for each message. The end of a stream takes nothing. The one request of a method that only the
// server streams is a message, too. Unary calls have no message rules: limit them by WithRules.
//
// A message that is refused is dropped, and RecvMsg, as Recv, returns an error that has the status of [Error], and is one of package ratelimit. If
// the handler returns it, the stream ends with ResourceExhausted and a RetryInfo. If the handler goes on, the next message asks anew. A rule with
// Wait slows the client down: while a message waits for its permit nothing more is received, and the flow control of gRPC holds back what the
// client sends. For example, Limit 10, Per one second and Wait one hour let the handler receive ten messages a second.
//
// WithMessageRules panics where WithRules does, and if a rule has Concurrency, because nobody says when a message is done.
func WithMessageRules(
	limiter *ratelimit.Limiter, key func(ctx context.Context, method string) (string, error), rules []ratelimit.Rule,
) Option {
	const name = "grpclimit.WithMessageRules"
	for _, r := range rules {
		if r.Releases() {
			panic(name + ": rule " + strconv.Quote(r.Name) + " counts calls that run, and nobody says when a message is done")
		}
	}
	all := wrap.NewKeyed(name, limiter, key, rules)
	return func(c *caller) { c.messages = append(c.messages, all) }
}

// within makes a call, or returns the error of the first rules that do not let it pass. What the call releases when it ends comes back also if the
// call panics.
func within(ctx context.Context, limits []*wrap.Keyed[string], method string, call func() error) error {
	if len(limits) == 0 {
		return call()
	}
	taken, err := take(ctx, limits[0], method)
	if err != nil {
		return err
	}
	defer taken.Release(ctx)
	return within(ctx, limits[1:], method, call)
}

// take takes a permit of each rule. It leaves a Charge of ctx to a wrapper around the service. The charge is nil if the rules do not count.
func take(ctx context.Context, rules *wrap.Keyed[string], method string) (*wrap.Taken, error) {
	apart, _ := ratelimit.WithCharge(ctx)
	return rules.Take(apart, method)
}
