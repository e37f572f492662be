// Package plain keeps the counts of rate limits on Redis, or Valkey, for sites whose operators forbid scripts. It counts in
// fixed windows and calendar windows, with ordinary commands in transactions. Where scripts are allowed, package redisstore
// knows all rules, and decides several of them in one round trip.
//
// All other rules are refused with a [ratelimit.RuleError] that says why. Neither New nor a wrapper's constructor knows both the
// store and the rules and returns an error, so ask [ratelimit.Limiter.Check] at the start of a program, or in a test of the package
// that the wrapper is generated into: it holds the rules, as senderSendCodeRules for Sender.SendCode. Else the first call under
// such a rule fails, before anything is charged.
//
// A call under one rule is one transaction, without conflicts however many calls there are. A call under several rules
// watches their counters and takes three round trips; of such calls that count on one counter, one is admitted at a time. A
// fixed window ends on the server's millisecond, and is never shorter than its rule says.
package plain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/turn"
)

type store struct {
	shared
	client redis.UniversalClient
	split  atomic.Bool // different subjects may live on different servers
	turns  *turn.Turns
	ahead  atomic.Int64 // how far the server's clock was ahead of ours when it was last asked
}

// shared is what a store with scripts does without them.
type shared interface {
	decide.Settings
	Guard(ask func() error) error
}

// New returns a store on the servers of client: a *redis.Client, a *redis.ClusterClient or a *redis.Ring. The client stays
// the caller's to close. On a cluster or a ring, the rules of one call must have one subject: a call whose subjects differ
// is an error, as without scripts it could not be all or nothing.
func New(client redis.UniversalClient) ratelimit.Store {
	s := &store{shared: redisstore.New(client).(shared), client: client, turns: turn.New()}
	switch client.(type) {
	case *redis.ClusterClient, *redis.Ring:
		s.split.Store(true)
	}
	return s
}

// Unsupported implements decide.Limited.
func (s *store) Unsupported(r *decide.Rule, wait int64) (argument, reason string) {
	const without = "without scripts "
	switch {
	case r.Kind == decide.Block:
		return "block", without + "a refusal cannot begin a block"
	case r.Kind == decide.Members || r.Kind == decide.CalendarMembers:
		return "distinct", without + "members cannot be counted exactly"
	case r.Kind != decide.Fixed && r.Kind != decide.Calendar:
		return "algorithm", without + "only fixed-window and calendar windows can be counted exactly"
	case wait > 0:
		return "wait", without + "no place can be kept for a call that waits"
	case r.Kind == decide.Fixed && r.Per%millisecond != 0:
		return "per", fmt.Sprintf("found %s; %sexpected whole milliseconds", time.Duration(r.Per)*time.Microsecond, without)
	}
	return "", ""
}

// Unfit implements decide.Limited.
func (s *store) Unfit(claims []decide.Claim, delay int64) (argument, reason string) {
	if delay > 0 {
		return "wait", "without scripts no place can be kept for a call that waits: a rule of this instance may not delay calls " +
			"that the server counts"
	}
	for i := range claims {
		if first := claims[0].Subject; s.split.Load() && claims[i].Subject != first {
			return "key", fmt.Sprintf("the subjects %q and %q of one call may lie on different servers; without scripts expected one subject",
				first, claims[i].Subject)
		}
	}
	return "", ""
}

// Decide implements ratelimit.Store. It returns as soon as ctx ends, which the client by itself does not; what is decided
// later nevertheless is given back.
func (s *store) Decide(ctx context.Context, call *decide.Call) (decide.Verdict, error) {
	own := *call // the caller may use its own again before the answer comes
	own.Claims = slices.Clone(call.Claims)
	type answer struct {
		decide.Verdict
		claims []decide.Claim
	}
	a, err := once.Await(ctx, func() (answer, error) {
		v, err := s.decide(once.Undated(ctx), &own)
		return answer{v, own.Claims}, err
	}, func(a answer, err error) {
		if err == nil && a.Admitted && !own.Peek {
			_ = s.Return(context.WithoutCancel(ctx), &own)
		}
	})
	if err != nil && strings.HasPrefix(err.Error(), "CROSSSLOT ") {
		s.split.Store(true) // the client is for a cluster and does not show it; nothing was done
	}
	copy(call.Claims, a.claims)
	return a.Verdict, err
}

// Return implements ratelimit.Store. It returns as soon as ctx ends, and its work is done nevertheless: a charge must not outlive
// the call that it was for.
func (s *store) Return(ctx context.Context, call *decide.Call) error {
	own := slices.Clone(call.Claims) // the caller may use its own again before the answer comes
	var charged []*counter
	for i := range own {
		if c := &own[i]; c.Charged {
			charged = append(charged, newCounter(call, c, c.At))
		}
	}
	undo := call.Undo
	untaken, err := once.Await(ctx, func() (bool, error) {
		return s.giveBack(context.WithoutCancel(ctx), charged, undo)
	}, nil)
	for i := range call.Claims {
		c := &call.Claims[i]
		c.Charged = c.Charged && untaken && err != nil
	}
	return err
}

// Reset implements ratelimit.Store. It returns as soon as ctx ends, as the others do.
func (s *store) Reset(ctx context.Context, call *decide.Call) (int, error) {
	own := *call
	own.Claims = slices.Clone(call.Claims)
	return once.Await(ctx, func() (found int, err error) {
		for i := range own.Claims {
			removed, err := s.forget(once.Undated(ctx), &own, &own.Claims[i])
			if found += int(removed); err != nil {
				return found, err
			}
		}
		return found, nil
	}, nil)
}
