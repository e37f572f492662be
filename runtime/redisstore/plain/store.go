// Package plain keeps the counts of rate limits on Redis 7, or Valkey, for sites that forbid scripts. It counts in fixed windows and
// calendar windows, with ordinary commands in transactions. For all other rules, calls fail with a *RuleError that says why; call Limiter.Check
// when the program starts. If scripts are allowed, use package redisstore: it knows all rules, and decides several in one round trip.
//
// A call under one rule takes one transaction and one round trip, however many calls there are. A call under several rules, or with UpTo,
// watches its counts and takes three round trips. If other calls change these counts in each of 100 tries, the call is refused, whatever the
// failure policy is.
//
// A fixed window ends at a whole millisecond of the server's clock. It is never shorter than its rule says, and up to a millisecond
// longer.
package plain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
)

type store struct {
	backend.Defaults
	servers *servers.Servers
	offset  atomic.Int64 // how far the server's clock was last seen ahead of ours, in microseconds
}

// Option changes how a store works.
type Option func(*store)

// WithTimeout bounds how long a call waits for one try to decide it, whatever the client's own options say. The default is 250 ms. If the
// server decides later, the permits are given back. The client's own timeouts bound the try itself, and the commands that give permits back.
// WithTimeout panics unless d is positive.
func WithTimeout(d time.Duration) Option {
	if d <= 0 {
		panic("plain.WithTimeout: found " + d.String() + ", expected a positive duration")
	}
	return func(s *store) { s.servers.Timeout = d }
}

// New returns a store on the servers of client: a *redis.Client, a *redis.ClusterClient or a *redis.Ring. The caller has to close the client.
// New panics if client is nil.
//
// On a cluster or a ring, the rules of one call must have one subject: without scripts, different servers cannot decide together.
func New(client redis.UniversalClient, options ...Option) ratelimit.Store {
	s := &store{servers: servers.New("plain.New", client)}
	for _, option := range options {
		option(s)
	}
	return s
}

// Fleet implements backend.Store.
func (s *store) Fleet(prefix string) *fleet.Fleet { return s.servers.Fleet(prefix) }

// Notify implements backend.Store.
func (s *store) Notify(notify func(notice string, cause error)) { s.servers.Notify(notify) }

// Lately implements backend.Store.
func (s *store) Lately(what string) int { return s.servers.Lately(what) }

// Unsupported implements backend.Store.
func (s *store) Unsupported(r *engine.Rule, wait int64) (argument, reason string) {
	switch {
	case r.Block > 0:
		return "block", "without scripts a refusal cannot begin a block"
	case r.Pausable:
		return "pause", "without scripts no pause can be read together with a count"
	case r.Kind.CountsMembers():
		return "distinct", "without scripts members cannot be counted exactly"
	case r.Kind != engine.FixedWindow && r.Kind != engine.Calendar && r.Kind != engine.Anchored:
		return "algorithm", "without scripts only fixed-window and calendar windows can be counted exactly"
	case wait > 0:
		return "wait", "without scripts no place can be kept for a call that waits"
	case r.Per%millisecond != 0:
		return "per", fmt.Sprintf("found %s; without scripts expected whole milliseconds", time.Duration(r.Per)*time.Microsecond)
	}
	return "", ""
}

// unfit returns an error if the claims of a call cannot be decided together.
func (s *store) unfit(claims []engine.Claim) error {
	for i := range claims {
		if first := &claims[0]; s.servers.Split.Load() && claims[i].Subject != first.Subject {
			return &ratelimit.RuleError{Rule: first.Rule.Name, Argument: "key",
				Reason: "the keys of one call may be on different servers; without scripts expected one key"}
		}
	}
	return nil
}

// Decide implements backend.Store. It returns when ctx ends, and if the server is silent. If the call is then admitted later, its charge is given
// back.
func (s *store) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	own, charged := call.Clone(), make(chan bool, 1) // the caller may reuse its claims before the answer comes
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(s.servers.Timeout, func() { cancel(s.servers.Late(s.servers.Timeout)) })
	defer silent.Stop()
	v, err := servers.Await(ctx, s.servers, func() (v engine.Verdict, err error) {
		defer func() { charged <- v.Admitted }()
		return s.decide(ctx, own, silent)
	})
	if err != nil {
		go s.servers.Guard(func() {
			if <-charged {
				_ = s.undo(ctx, own)
			}
		})
		return engine.Verdict{}, err
	}
	copy(call.Claims, own.Claims)
	return v, nil
}

// decide tries until the call is decided. Each try restarts the timer.
func (s *store) decide(ctx context.Context, call *engine.Call, silent *time.Timer) (v engine.Verdict, err error) {
	if err := s.unfit(call.Claims); err != nil {
		return v, err
	}
	err = repeat(ctx, maxTries, func() error {
		silent.Reset(s.servers.Timeout)
		err := s.guard(ctx, call.Claims[0].Subject, func(ctx context.Context, server redis.UniversalClient) (err error) {
			v, err = s.try(ctx, server, call)
			return err
		})
		if errors.Is(err, errMisplaced) {
			if failed := s.undo(ctx, call); failed != nil {
				return failed
			}
		}
		return err
	})
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, errAgain) && ctx.Err() == nil:
		return s.contended(call), nil
	case strings.HasPrefix(err.Error(), "CROSSSLOT "):
		s.servers.Split.Store(true) // the server is a cluster, although the client does not show it; nothing was charged
		err = cmp.Or(s.unfit(call.Claims), err)
	}
	return engine.Verdict{}, err
}
