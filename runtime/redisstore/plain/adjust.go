package plain

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
)

// Adjust implements backend.Store. If ctx ends, it goes on in the background.
func (s *store) Adjust(ctx context.Context, call *engine.Call) error {
	own := call.Clone() // the caller may reuse its claims
	claims, err := servers.Await(ctx, s.servers, func() ([]engine.Claim, error) {
		err := s.change(ctx, own)
		return own.Claims, err
	})
	copy(call.Claims, claims)
	if claims == nil {
		call.ClearDeltas() // nobody knows whether it was done
	}
	return err
}

// change adjusts a call, whether ctx ends or not. If other calls change the counts meanwhile, it tries again for up to a minute.
func (s *store) change(ctx context.Context, call *engine.Call) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return repeat(ctx, noEnd, func() error {
		return s.guard(ctx, call.Claims[0].Subject, func(ctx context.Context, server redis.UniversalClient) error {
			return s.adjust(ctx, server, call)
		})
	})
}

// undo rolls back the charge of a call.
func (s *store) undo(ctx context.Context, call *engine.Call) error {
	own := call.Clone()
	own.Undo()
	return s.change(ctx, own)
}

// adjust tries once. It clears the Deltas of the call, unless it certainly changed nothing.
func (s *store) adjust(ctx context.Context, server redis.UniversalClient, call *engine.Call) error {
	counters := s.adjusted(call)
	if len(counters) == 0 {
		return nil
	}
	var left []*counter // their claims take permits of a window that is not open
	err := watch(ctx, server, counters, func(tx *redis.Tx) error {
		changed, err := s.adjustable(ctx, tx, counters)
		left = slices.DeleteFunc(slices.Clone(counters), func(n *counter) bool { return n.Delta < 0 || slices.Contains(changed, n) })
		if err != nil || len(changed) == 0 {
			return err
		}
		now, err := s.ask(ctx, tx.TxPipelined, changed, func(n *counter, ctx context.Context, p redis.Pipeliner) {
			if n.Delta > 0 {
				n.charge(ctx, p)
			} else {
				n.giveBack(ctx, p, -n.Delta, call.Rollback)
			}
		})
		_, refused := errors.AsType[notRun](err)
		if err != nil && !errors.Is(err, errAgain) && !refused {
			call.ClearDeltas() // the charges may have been changed
		}
		for _, n := range changed {
			if n.Delta > 0 && err == nil {
				n.At = n.chargedAt(now)
			}
		}
		return err
	})
	if err == nil {
		call.ClearDeltas()
		for _, n := range left {
			n.Delta = n.add
		}
	}
	return err
}

// adjusted returns the counters that a call adjusts. Permits are taken from the present window, and given to it. They are given back to the window
// of their charge.
func (s *store) adjusted(call *engine.Call) (counters []*counter) {
	for i := range call.Claims {
		c := &call.Claims[i]
		if c.Delta == 0 {
			continue
		}
		at, present := c.At, c.Delta > 0 || call.Change == engine.Gives
		if present {
			at = s.now()
		}
		n := newCounter(call, c, at)
		n.present, n.add, n.most = present, c.Delta, mostUsed
		counters = append(counters, n)
	}
	return counters
}

// adjustable returns the counters that can be changed. It leaves out those that give back permits of a window that has ended, or that has no
// count.
func (s *store) adjustable(ctx context.Context, tx *redis.Tx, counters []*counter) (changed []*counter, err error) {
	now, err := s.ask(ctx, tx.Pipelined, counters, (*counter).look)
	if err != nil {
		return nil, err
	}
	for _, n := range counters {
		if n.present && (!n.holds(now) || n.beginsEarly(now)) {
			return nil, errAgain
		}
		if n.present {
			n.At = max(now, n.start) // of permits to give, in the window that was just read
		}
		switch {
		case n.Delta > 0 && n.over:
			return nil, s.discard(ctx, tx, counters)
		case n.Delta > 0 && n.LacksAnchor() && !n.isCount(): // it would open a window without an end
		case n.Delta > 0 || n.isOpen():
			changed = append(changed, n)
		}
	}
	return changed, nil
}

// discard removes anchored windows that have ended, and damaged counts, which would otherwise let everybody pass, or nobody. On success it returns
// errAgain.
func (s *store) discard(ctx context.Context, tx *redis.Tx, counters []*counter) error {
	stale := slices.DeleteFunc(slices.Clone(counters), func(n *counter) bool { return !n.isStale() })
	if _, err := s.ask(ctx, tx.TxPipelined, stale, (*counter).forget); err != nil {
		return err
	}
	if slices.ContainsFunc(stale, func(n *counter) bool { return n.damaged }) {
		s.servers.TellDamage()
	}
	return errAgain
}

// Reset implements backend.Store.
func (s *store) Reset(ctx context.Context, call *engine.Call) (int, error) {
	own := call.Clone() // the caller may reuse its claims
	return servers.Await(ctx, s.servers, func() (int, error) { return s.reset(ctx, own) })
}

func (s *store) reset(ctx context.Context, call *engine.Call) (found int, err error) {
	for i := range call.Claims {
		err := repeat(ctx, maxTries, func() error {
			return s.guard(ctx, call.Claims[i].Subject, func(ctx context.Context, server redis.UniversalClient) error {
				n := newCounter(call, &call.Claims[i], s.now())
				now, err := s.ask(ctx, server.TxPipelined, []*counter{n}, (*counter).forget)
				switch {
				case err == nil && !n.holds(now):
					return errAgain
				case err == nil && n.exists:
					found++
				}
				return err
			})
		})
		if err != nil {
			return found, err
		}
	}
	return found, nil
}
