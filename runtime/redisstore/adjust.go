package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Adjust implements engine.Store. It goes on even if ctx ends, because a charge must not outlive its call.
func (s *store) Adjust(ctx context.Context, call *engine.Call) error {
	if s.leases.adjust(call) {
		return nil
	}
	var failed error
	for _, g := range s.groups(call, func(c *engine.Claim) bool { return c.Delta != 0 }) {
		r := request{call: &g.call, adjust: true}
		err := s.do(context.WithoutCancel(ctx), &r)
		failed = errors.Join(failed, err)
		if err != nil && untaken(err) {
			continue
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
func (s *store) Reset(ctx context.Context, call *engine.Call) (found int, err error) {
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
