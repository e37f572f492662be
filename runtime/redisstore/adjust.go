package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
)

// Adjust implements engine.Store. It goes on even if ctx ends, because a charge must not outlive its call.
func (s *store) Adjust(ctx context.Context, call *engine.Call) error {
	if s.leases.adjust(call) {
		return nil
	}
	return s.adjust(ctx, call, time.Time{})
}

// adjust asks the servers to adjust the charge. After until it goes on in the background; zero means that each server has the whole timeout.
func (s *store) adjust(ctx context.Context, call *engine.Call, until time.Time) error {
	var failed error
	for _, g := range s.groups(call, func(c *engine.Claim) bool { return c.Delta != 0 }) {
		r := request{call: &g.call, adjust: true, until: until}
		err := s.do(context.WithoutCancel(ctx), &r)
		failed = errors.Join(failed, err)
		switch {
		case err == nil || !untaken(err):
		case until.IsZero() || time.Now().Before(until):
			continue
		default:
			s.giveBack(clone(&g.call))
		}
		for of, i := range g.index {
			call.Claims[i].Delta = 0
			if err == nil {
				call.Claims[i].Delta = g.call.Claims[of].Delta
			}
		}
	}
	return failed
}

// Reset implements engine.Store.
func (s *store) Reset(ctx context.Context, call *engine.Call) (int, error) {
	own := clone(call) // the caller may reuse its call
	return servers.Await(ctx, s.Servers, func() (int, error) { return s.reset(ctx, own) })
}

func (s *store) reset(ctx context.Context, call *engine.Call) (found int, err error) {
	defer s.forgetLeases(call)
	defer s.refusals.forget(call)
	var states []*redis.IntCmd
	_, err = s.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range call.Claims {
			c := &call.Claims[i]
			states = append(states, p.Del(ctx, key.State(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag)))
			p.Del(ctx, key.Free(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag), key.Block(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag))
		}
		return nil
	})
	for _, deleted := range states {
		found += int(deleted.Val())
	}
	return found, err
}
