package plain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// errAgain says that nothing was changed, because other calls changed a count meanwhile, or a window ended. In the first case the client itself
// returns it.
const errAgain = redis.TxFailedErr

// errMisplaced says that a call was charged to a calendar window that is not the present one.
var errMisplaced = fmt.Errorf("the server's clock is not where it was: %w", errAgain)

const (
	maxTries  = 100
	noEnd     = 0                      // for repeat: any number of tries
	firstWait = 100 * time.Microsecond // the longest wait before the second try; it grows by the same with each try
	maxFactor = 100                    // how many times firstWait it grows to
)

// repeat calls try until it returns something other than errAgain, but at most the given number of times. The waits between tries become longer.
// If ctx ends, repeat stops before the next try.
func repeat(ctx context.Context, tries int, try func() error) error {
	for i := 1; ; i++ {
		err := try()
		if !errors.Is(err, errAgain) || i == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("other calls changed the counts in each try: %w", ctx.Err())
		case <-time.After(rand.N(time.Duration(min(i, maxFactor)) * firstWait)):
		}
	}
}

// try tries once to decide a call.
func (s *store) try(ctx context.Context, server redis.UniversalClient, call *engine.Call) (v engine.Verdict, err error) {
	counters, now := make([]*counter, len(call.Claims)), s.now()
	for i := range counters {
		counters[i] = newCounter(call, &call.Claims[i], now)
	}
	switch {
	case call.Peek || call.Refused:
		return s.look(ctx, server.TxPipelined, call, counters)
	case len(counters) == 1 && !call.UpTo:
		if v, err = s.charge(ctx, server.TxPipelined, call, counters); err != nil && !errors.Is(err, errAgain) || !isStale(counters) {
			return v, err
		}
	}
	return s.watch(ctx, server, call, counters)
}

// isStale reports whether a key has to be removed before its count can be charged.
func isStale(counters []*counter) bool { return slices.ContainsFunc(counters, (*counter).isStale) }

func (n *counter) isStale() bool { return n.damaged || n.over }

// watch decides a call under several rules, or on a stale count. It reads all counts, and charges them if none has been changed meanwhile.
func (s *store) watch(ctx context.Context, server redis.UniversalClient, call *engine.Call, counters []*counter) (v engine.Verdict, err error) {
	err = watch(ctx, server, counters, func(tx *redis.Tx) error {
		v, err = s.look(ctx, tx.Pipelined, call, counters)
		switch {
		case err != nil && !errors.Is(err, errAgain):
		case isStale(counters):
			err = s.discard(ctx, tx, counters)
		case err == nil && v.Admitted:
			v, err = s.charge(ctx, tx.TxPipelined, call, counters)
		}
		return err
	})
	return v, err
}

// watch calls do. Transactions in do fail with errAgain if others have changed one of the counts since watch was called.
func watch(ctx context.Context, server redis.UniversalClient, counters []*counter, do func(*redis.Tx) error) error {
	keys := make([]string, len(counters))
	for i, n := range counters {
		keys[i] = n.key
	}
	return server.Watch(ctx, do, keys...)
}

// look decides a call without charging it. It sets in the counters what to charge.
func (s *store) look(ctx context.Context, run run, call *engine.Call, counters []*counter) (v engine.Verdict, err error) {
	now, err := s.ask(ctx, run, counters, (*counter).look)
	if err != nil {
		return v, err
	}
	return decide(call, counters, now)
}

// charge charges each count that has room.
func (s *store) charge(ctx context.Context, run run, call *engine.Call, counters []*counter) (v engine.Verdict, err error) {
	charged := slices.DeleteFunc(slices.Clone(counters), func(n *counter) bool { return n.add == 0 })
	now, err := s.ask(ctx, run, charged, (*counter).charge)
	if err != nil {
		return v, err
	}
	if v, err = decide(call, counters, now); err != nil {
		err = errMisplaced
	}
	return v, err
}

// decide decides a call on the counts as they were before they were charged, and sets the results in the claims. The counts were read at the
// server's time now. It returns errAgain if a window has ended.
func decide(call *engine.Call, counters []*counter, now int64) (v engine.Verdict, err error) {
	cells := make([]*engine.Cell, len(counters))
	for i, n := range counters {
		cells[i] = n.cell(now)
	}
	v = call.Decide(cells, now)
	for _, n := range counters {
		if n.noteCharge(now); !n.holds(now) || n.beginsEarly(now) || n.Refused && now >= n.end {
			err = errAgain
		}
	}
	return v, err
}

// contended returns the refusal of a call whose counts other calls changed in every try.
func (s *store) contended(call *engine.Call) engine.Verdict {
	v := engine.Verdict{Now: s.now(), Finding: engine.Finding{Admitted: !call.Refused}}
	for i := range call.Claims {
		c := &call.Claims[i]
		c.Clear()
		c.Full, c.More = v.Now, v.Now
		if c.Mode == engine.Enforce {
			c.Refused, c.Earliest, v.Admitted = true, v.Now+millisecond, false
			c.More = c.Earliest
		}
	}
	if v.Admitted {
		v.At = v.Now
	}
	return v
}
