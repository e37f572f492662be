// Package redisstore keeps the counts of rate limits on Redis, or Valkey, shared by all processes that use it. Each call is
// decided by one script, script.lua, on the server's clock. The package knows Redis and the numbers of rules; it knows nothing
// of directives and methods.
package redisstore

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/turn"
)

type store struct {
	client  redis.UniversalClient
	start   time.Time // of the clock by which servers' clocks are compared
	turns   *turn.Turns
	split   atomic.Bool  // different subjects may live on different servers
	ahead   atomic.Int64 // how far the server's clock was ahead of ours when that last mattered
	breaker breaker
}

// New returns a store on the servers of client: a *redis.Client, a *redis.ClusterClient or a *redis.Ring. The client stays
// the caller's to close; a nil one panics. Rules whose subjects are equal are decided in one step; so are all rules on a single server. On a
// cluster or a ring, different subjects are decided one after the other, and when one refuses, what those before it took is
// given back.
func New(client redis.UniversalClient) ratelimit.Store {
	if client == nil {
		panic("redisstore.New: the client is nil")
	}
	s := &store{client: client, start: time.Now(), turns: turn.New()}
	switch client.(type) {
	case *redis.ClusterClient, *redis.Ring:
		s.split.Store(true)
		s.breaker.off = true // one server's failure says nothing about the others
	}
	return s
}

// Decide implements ratelimit.Store.
func (s *store) Decide(ctx context.Context, call *decide.Call) (decide.Verdict, error) {
	v, err := s.decideAll(ctx, call)
	if err != nil && strings.HasPrefix(err.Error(), "CROSSSLOT ") && !s.split.Swap(true) {
		return s.decideAll(ctx, call) // the client is for a cluster and does not show it; nothing was done
	}
	return v, err
}

func (s *store) decideAll(ctx context.Context, call *decide.Call) (decide.Verdict, error) {
	groups := s.groups(call)
	if len(groups) == 1 {
		return s.decide(ctx, groups[0], call, first(call))
	}
	return s.decideSpread(ctx, groups, call)
}

// first is what a call asks first: for the earliest place that it can use.
func first(call *decide.Call) operation {
	if call.From > 0 {
		return operation{opFrom, call.From}
	}
	return operation{opWait, call.After}
}

// maxAsks bounds how often one decision may be asked for again because a window ended, or a place was taken, meanwhile. Of
// calls that compete for places in windows to come one gets its place each time.
const maxAsks = 100

// decide asks for the group's decision, in which admit is what a call asks that may be admitted.
func (s *store) decide(ctx context.Context, g *group, call *decide.Call, admit operation) (decide.Verdict, error) {
	var op operation
	switch {
	case call.Peek:
		op.name = opPeek
	case call.Refused:
		op.name = opRefuse
	case admit.operand > 0 || !g.plain():
		op = admit
	}
	g.reset()
	now := time.Now().UnixMicro() + s.ahead.Load()
	for range maxAsks {
		asked := time.Since(s.start)
		reply, err := s.run(ctx, g, now, op)
		if err != nil {
			return decide.Verdict{}, err
		}
		other, ok := reply.(int64)
		if !ok || other > 0 {
			v, err := g.read(reply, !call.Peek && !call.Refused)
			g.now, g.at = v.Now, g.earliest(v)
			g.low, g.high = v.Now-time.Since(s.start).Microseconds(), v.Now-asked.Microseconds()
			return v, err
		}
		if now = -other; op.name == "" { // else it may be a time to come
			s.ahead.Store(now - time.Now().UnixMicro())
			op = admit // a plain call cannot go on where others wait
		}
	}
	g.now, g.at = now, now
	return contend([]*group{g}, []*group{g})
}

// Return implements ratelimit.Store.
func (s *store) Return(ctx context.Context, call *decide.Call) error {
	op := opReturn
	if call.Undo {
		op = opUndo
	}
	return s.giveBack(ctx, op, s.groups(call))
}

// giveBack gives back what the groups were charged, also if ctx ends meanwhile: a charge must not outlive its call. Claims
// that no server has given back, and none will, stay charged.
func (s *store) giveBack(ctx context.Context, op string, groups []*group) error {
	var failed error
	for _, g := range groups {
		if g := g.charged(); len(g.claims) > 0 {
			at := g.claims[0].At
			_, err := s.run(ctx, g, at, operation{op, at})
			failed = errors.Join(failed, err)
			for _, c := range g.claims {
				c.Charged = untaken(err)
			}
		}
	}
	return failed
}

// Reset implements ratelimit.Store.
func (s *store) Reset(ctx context.Context, call *decide.Call) (int, error) {
	found := 0
	for _, g := range s.groups(call) {
		n, err := ask(ctx, s, func(ctx context.Context) (int64, error) { return s.client.Del(ctx, g.keys...).Result() })
		if found += int(n); err != nil {
			return found, err
		}
	}
	return found, nil
}
