// Package redisstore keeps the counts of rate limits on Redis, or Valkey, shared by all processes that use it. Each call is
// decided by one script, script.lua, on the server's clock. The package knows Redis and the numbers of rules; it knows nothing
// of directives and methods.
package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

type store struct {
	client  redis.UniversalClient
	split   bool         // different subjects may live on different servers
	ahead   atomic.Int64 // how far the server's clock was ahead of ours when that last mattered
	breaker breaker
}

// New returns a store on the servers of client: a *redis.Client, a *redis.ClusterClient or a *redis.Ring. The client stays
// the caller's to close. Rules whose subjects are equal are decided in one step; so are all rules on a single server. On a
// cluster or a ring, different subjects are decided one after the other, and when one refuses, what those before it took is
// given back.
func New(client redis.UniversalClient) runtime.Store {
	s := &store{client: client}
	switch client.(type) {
	case *redis.ClusterClient, *redis.Ring:
		s.split = true
	}
	return s
}

// Decide implements runtime.Store.
func (s *store) Decide(ctx context.Context, call *decide.Call) (decide.Verdict, error) {
	groups := s.groups(call)
	verdict, err := s.decide(ctx, groups[0], call.After, call.Peek)
	if err != nil || len(groups) == 1 {
		return verdict, err
	}
	charged := 0 // how many groups were, the first ones
	for i, g := range groups[1:] {
		if verdict.Admitted {
			charged = i + 1
		}
		// After a refusal the others are still asked, so that all refusing rules are known.
		v, err := s.decide(ctx, g, call.After, call.Peek || !verdict.Admitted)
		if err != nil {
			return verdict, errors.Join(err, s.giveBack(ctx, groups[:charged]))
		}
		g.shift(verdict.Now - v.Now)
		verdict.At = max(verdict.At, verdict.Now+v.At-v.Now)
		verdict.Admitted = verdict.Admitted && v.Admitted
	}
	if !verdict.Admitted && !call.Peek {
		return verdict, s.giveBack(ctx, groups[:charged])
	}
	return verdict, nil
}

// maxAsks bounds how often one decision may be asked for again because a calendar window ended meanwhile.
const maxAsks = 5

func (s *store) decide(ctx context.Context, g *group, after int64, peek bool) (decide.Verdict, error) {
	var operation []any
	switch {
	case peek:
		operation = []any{"peek"}
	case after > 0 || !g.plain():
		operation = []any{"wait", after}
	}
	now := time.Now().UnixMicro() + s.ahead.Load()
	for range maxAsks {
		reply, err := s.run(ctx, g, now, operation...)
		if err != nil {
			return decide.Verdict{}, err
		}
		switch reply := reply.(type) {
		case int64:
			if reply > 0 {
				return g.admitted(reply, reply, "")
			}
			now = -reply
			if operation == nil { // else it may be a time to come
				s.ahead.Store(now - time.Now().UnixMicro())
			}
		case []any:
			return g.admittedWith(reply)
		case string:
			return g.refused(reply)
		default:
			return decide.Verdict{}, errReply
		}
	}
	return decide.Verdict{}, errors.New("the calendar windows of the rules change faster than they can be asked for")
}

// Return implements runtime.Store.
func (s *store) Return(ctx context.Context, call *decide.Call) error {
	return s.giveBack(ctx, s.groups(call))
}

// giveBack does its work even if ctx has ended: a charge must not outlive the call that it was for.
func (s *store) giveBack(ctx context.Context, groups []*group) error {
	ctx = context.WithoutCancel(ctx)
	var failed error
	for _, g := range groups {
		_, err := s.run(ctx, g, g.claims[0].At, "return", g.claims[0].At)
		failed = errors.Join(failed, err)
	}
	return failed
}

// Reset implements runtime.Store.
func (s *store) Reset(ctx context.Context, call *decide.Call) error {
	for _, g := range s.groups(call) {
		if err := s.client.Del(ctx, g.keys...).Err(); err != nil {
			return err
		}
	}
	return nil
}
