package ratelimit

import (
	"io"
	"log/slog"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

func init() { bridge.View = view }

// view returns a limiter for a console: it decides by the same store, prefix and secret, takes keys also in the form in which they are shown, and
// declares no rules.
func view(limiter any) (any, string, *fleet.Fleet) {
	l := limiter.(*Limiter)
	v := &Limiter{
		store: l.store, decider: l.decider, fleet: l.fleet,
		prefix: l.prefix, hasher: l.hasher, shownKeys: true, policy: l.policy, logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	v.requested.rules = map[uint64]*prepared{}
	v.used.start()
	return v, v.prefix, v.fleet
}
