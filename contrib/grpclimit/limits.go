package grpclimit

import (
	"context"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// ClientOption changes a client interceptor.
type ClientOption func(*limits)

// limits are the rules for the calls of a client. The zero limits let every call pass.
type limits struct{ rules *wrap.Keyed[string] }

// WithLimits limits the calls of a client by rules. All rules count for the key of the call, which the function key returns; if it is nil, all
// calls share the permits. The method is a full one, such as /grpc.health.v1.Health/Check. A call waits as long as the rules' Wait says. One
// that is refused is not sent: its error is the one of package ratelimit, and has a status. A stream takes one permit when it begins.
//
// A status ResourceExhausted or Unavailable with a RetryInfo, or with retry-after, retry-after-ms or grpc-retry-pushback-ms in its trailer, pauses the
// key for so long, up to a day, in all programs with the limiter's prefix: calls that may wait longer hold, and others are refused. For that, rules
// become Pausable, except those with Cron, Lease, or a mode that refuses nothing. If gRPC could not send a call, its permits go back.
//
// WithLimits panics if there is no rule, if a rule is not valid, has Distinct, Computed or Every, or is a Concurrency, or if the limiter is nil.
func WithLimits(
	limiter *ratelimit.Limiter, key func(ctx context.Context, method string) (string, error), rules []ratelimit.Rule,
) ClientOption {
	const name = "grpclimit.WithLimits"
	for _, r := range rules {
		if r.Distinct != "" || r.Releases() {
			panic(name + ": rule " + strconv.Quote(r.Name) + " counts members or calls that run; expected one that counts calls")
		}
	}
	all := limits{wrap.NewKeyed(name, limiter, key, wrap.Pausable(rules))}
	return func(l *limits) { *l = all }
}

func newLimits(opts []ClientOption) *limits {
	l := &limits{}
	for _, option := range opts {
		option(l)
	}
	return l
}

// take takes the permits of a call. The charge is nil if there are no rules.
func (l *limits) take(ctx context.Context, method string) (*wrap.Taken, error) {
	if l.rules == nil {
		return nil, nil
	}
	taken, err := l.rules.Take(ctx, method)
	if err != nil {
		return nil, withStatus(err, 0)
	}
	return taken, nil
}

// withStatus returns an error of package ratelimit, or one of the context, with its status: see statusOf.
func withStatus(err error, share float64) error {
	return &remote{err, status.Convert(statusOf(err, share)), false}
}

// giveBack gives back the permits of a call that was not sent.
func (l *limits) giveBack(ctx context.Context, taken *wrap.Taken) {
	if taken != nil {
		l.rules.GiveBack(ctx, taken)
	}
}

// pause pauses the key of a call if its error asks for that, or else the trailer that came with it.
func (l *limits) pause(ctx context.Context, taken *wrap.Taken, err error, trailer metadata.MD) {
	if code := status.Code(err); taken == nil || code != codes.ResourceExhausted && code != codes.Unavailable {
		return
	}
	l.rules.Pause(ctx, taken, wrap.Asked(err, trailer.Get))
}
