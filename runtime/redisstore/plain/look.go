package plain

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
)

// Look implements backend.Store.
func (s *store) Look(ctx context.Context, call *engine.Call) (engine.Looked, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.servers.Timeout, s.servers.Late(s.servers.Timeout))
	defer cancel()
	own := call.Clone() // the caller may reuse its call
	return servers.Await(ctx, s.servers, func() (l engine.Looked, err error) {
		claim := &own.Claims[0]
		err = repeat(ctx, maxTries, func() error {
			n := newCounter(own, claim, s.now())
			return s.guard(ctx, claim.Subject, func(ctx context.Context, server redis.UniversalClient) error {
				now, err := s.ask(ctx, server.TxPipelined, []*counter{n}, (*counter).look)
				if err == nil && !n.holds(now) {
					err = errAgain
				}
				if err == nil {
					l = claim.Look(n.cell(now), now)
				}
				return err
			})
		})
		return l, err
	})
}

// Servers implements backend.Store.
func (s *store) Servers(ctx context.Context, look func(ctx context.Context, name string, do fleet.Do) error) error {
	return s.servers.Each(ctx, look)
}
