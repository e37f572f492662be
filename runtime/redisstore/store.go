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

	"github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

type store struct {
	client  redis.UniversalClient
	split   atomic.Bool  // different subjects may live on different servers
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
		s.split.Store(true)
		s.breaker.off = true // one server's failure says nothing about the others
	}
	return s
}

// Decide implements runtime.Store.
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
		return s.decide(ctx, groups[0], call, call.After)
	}
	after, asked := call.After, *call
	for range maxAsks {
		verdict, err := s.decideInTurn(ctx, groups, asked, after)
		wait := verdict.At - verdict.Now
		if err != nil || !verdict.Admitted || call.Peek || groups[0].wait == wait {
			return verdict, err
		}
		// A later group admits the call later than the first one, whose place has to move there.
		if err := s.giveBack(ctx, opUndo, groups); err != nil {
			return verdict, err
		}
		after = wait
	}
	return decide.Verdict{}, errors.New("the places of the rules move faster than they can be asked for")
}

// decideInTurn decides group after group. When one refuses, what those before it took is given back, and the others are only
// asked, so that all refusing rules are known. Times are told on the clock of the first group's server.
func (s *store) decideInTurn(ctx context.Context, groups []*group, call decide.Call, after int64) (decide.Verdict, error) {
	verdict, err := s.decide(ctx, groups[0], &call, after)
	for i := 1; i < len(groups) && err == nil; i++ {
		g := groups[i]
		var v decide.Verdict
		call.Refused = call.Refused || !verdict.Admitted
		if v, err = s.decide(ctx, g, &call, max(after, verdict.At-verdict.Now)); err != nil {
			break
		}
		g.shift(verdict.Now - v.Now)
		verdict.At = max(verdict.At, verdict.Now+g.wait)
		verdict.Admitted = verdict.Admitted && v.Admitted
	}
	if err != nil || !verdict.Admitted {
		err = errors.Join(err, s.giveBack(ctx, opUndo, groups))
	}
	return verdict, err
}

// maxAsks bounds how often one decision may be asked for again because a window ended, or a place was taken, meanwhile. Of
// calls that compete for places in windows to come, or on two servers, one gets its place each time.
const maxAsks = 100

func (s *store) decide(ctx context.Context, g *group, call *decide.Call, after int64) (decide.Verdict, error) {
	var op operation
	switch {
	case call.Peek:
		op.name = opPeek
	case call.Refused:
		op.name = opRefuse
	case after > 0 || !g.plain():
		op = operation{opWait, after}
	}
	g.reset()
	now := time.Now().UnixMicro() + s.ahead.Load()
	for range maxAsks {
		reply, err := s.run(ctx, g, now, op)
		if err != nil {
			return decide.Verdict{}, err
		}
		other, ok := reply.(int64)
		if !ok || other > 0 {
			return g.read(reply, !call.Peek && !call.Refused)
		}
		if now = -other; op.name == "" { // else it may be a time to come
			s.ahead.Store(now - time.Now().UnixMicro())
			op = operation{opWait, after} // a plain call cannot go on where others wait
		}
	}
	return decide.Verdict{}, errors.New("the calendar windows of the rules change faster than they can be asked for")
}

// Return implements runtime.Store.
func (s *store) Return(ctx context.Context, call *decide.Call) error {
	return s.giveBack(ctx, opReturn, s.groups(call))
}

// giveBack gives back what the groups were charged, also if ctx ends meanwhile: a charge must not outlive its call.
func (s *store) giveBack(ctx context.Context, op string, groups []*group) error {
	var failed error
	for _, g := range groups {
		if g := g.charged(); len(g.claims) > 0 {
			at := g.claims[0].At
			_, err := s.run(ctx, g, at, operation{op, at})
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// Reset implements runtime.Store.
func (s *store) Reset(ctx context.Context, call *decide.Call) error {
	for _, g := range s.groups(call) {
		_, err := ask(ctx, s, func(ctx context.Context) (int64, error) { return s.client.Del(ctx, g.keys...).Result() })
		if err != nil {
			return err
		}
	}
	return nil
}
