package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Adjust implements engine.Store. It does not end with ctx: a charge must not outlive its call.
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
func (s *store) Reset(ctx context.Context, call *engine.Call) (int, error) {
	defer s.forgetLeases(call)
	defer s.refusals.forget(call)
	found := 0
	for _, g := range s.groups(call, func(*engine.Claim) bool { return true }) {
		var states, others []string
		for i := range g.call.Claims {
			c := &g.call.Claims[i]
			states = append(states, key.State(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag))
			others = append(others, key.Free(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag),
				key.Block(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag))
		}
		var deleted *redis.IntCmd
		_, err := s.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			deleted = p.Del(ctx, states...)
			p.Del(ctx, others...)
			return nil
		})
		if err != nil {
			return found, err
		}
		found += int(deleted.Val())
	}
	return found, nil
}
