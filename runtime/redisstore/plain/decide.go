package plain

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// errAgain says that nothing was done: somebody else was faster, or a calendar window ended.
var errAgain = errors.New("other calls are faster, again and again")

// errMisplaced says that a call was charged to a calendar window that is not the present one.
var errMisplaced = errors.New("the clock of the server is not where it was")

// maxTries bounds how often a transaction is tried.
const maxTries = 100

// repeat tries again, later and later, as long as that is what is asked for.
func (s *store) repeat(try func() error) (err error) {
	for i := range time.Duration(maxTries) {
		err = s.Guard(try)
		if !errors.Is(err, errAgain) {
			return err
		}
		time.Sleep(rand.N((i + 1) * 100 * time.Microsecond))
	}
	return err
}

func (s *store) decide(ctx context.Context, call *decide.Call) (v decide.Verdict, err error) {
	counters := make([]*counter, len(call.Claims))
	if len(counters) > 1 && !call.Peek {
		leave, err := s.turns.Take(ctx, call) // their transactions would only disturb each other
		if err != nil {
			return v, err
		}
		defer leave()
	}
	err = s.repeat(func() (err error) {
		now := s.now()
		for i := range call.Claims {
			counters[i] = newCounter(call, &call.Claims[i], now)
		}
		switch {
		case call.Peek:
			v, err = s.look(ctx, s.transaction(counters[0].key), counters)
		case len(counters) == 1:
			v, err = s.charge(ctx, s.transaction(counters[0].key), counters)
		default:
			v, err = s.watch(ctx, counters)
		}
		if errors.Is(err, errMisplaced) {
			if _, err = s.giveBack(ctx, counters, true); err == nil {
				err = errAgain
			}
		}
		return err
	})
	if err != errAgain {
		return v, err
	}
	now := s.now()
	if !call.Contend(now, now) {
		return decide.Verdict{}, err
	}
	return decide.Verdict{Now: now, At: now}, nil // others were too fast, nothing was charged
}

// watch decides under several rules: it looks at all counters, and charges them if nobody has changed any meanwhile.
func (s *store) watch(ctx context.Context, counters []*counter) (v decide.Verdict, err error) {
	err = s.client.Watch(ctx, func(tx *redis.Tx) error {
		v, err = s.look(ctx, tx.Pipelined, counters)
		if err != nil || !v.Admitted {
			return err
		}
		var fitting []*counter
		for _, n := range counters {
			if n.fits {
				fitting = append(fitting, n)
			}
		}
		if len(fitting) > 0 {
			v, err = s.charge(ctx, tx.TxPipelined, fitting)
		}
		return err
	}, keys(counters)...)
	if errors.Is(err, redis.TxFailedErr) {
		err = errAgain
	}
	return v, err
}

// run is how commands get to a server: in a pipeline, or in a transaction.
type run func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error)

// transaction returns how a transaction gets to the server of a key. A ring by itself would deal its commands out.
func (s *store) transaction(key string) run {
	ring, ok := s.client.(*redis.Ring)
	if !ok {
		return s.client.TxPipelined
	}
	return func(ctx context.Context, queue func(redis.Pipeliner) error) (replies []redis.Cmder, err error) {
		err = ring.Watch(ctx, func(tx *redis.Tx) error {
			replies, err = tx.TxPipelined(ctx, queue)
			return err
		}, key)
		return replies, err
	}
}

// ask sends a question about all counters, and returns the server's time.
func (s *store) ask(ctx context.Context, run run, counters []*counter, what func(*counter, context.Context, redis.Pipeliner)) (int64, error) {
	var clock *redis.TimeCmd
	_, err := run(ctx, func(p redis.Pipeliner) error {
		for _, n := range counters {
			what(n, ctx, p)
		}
		clock = p.Time(ctx) // behind what opens a window, so that no call seems older than its window
		return nil
	})
	if err != nil {
		return 0, err
	}
	now := clock.Val().UnixMicro()
	s.ahead.Store(now - time.Now().UnixMicro())
	return now, nil
}

// now is the server's time as far as it is known here.
func (s *store) now() int64 { return time.Now().UnixMicro() + s.ahead.Load() }

// look decides without charging.
func (s *store) look(ctx context.Context, run run, counters []*counter) (decide.Verdict, error) {
	now, err := s.ask(ctx, run, counters, (*counter).look)
	v := decide.Verdict{Now: now, At: now, Admitted: true}
	for _, n := range counters {
		if err == nil && !n.holds(now) {
			err = errAgain
		}
		if err == nil {
			err = n.answer(&v)
		}
	}
	return v, err
}

// charge charges each counter its claim's cost, if that fits.
func (s *store) charge(ctx context.Context, run run, counters []*counter) (decide.Verdict, error) {
	now, err := s.ask(ctx, run, counters, (*counter).charge)
	v := decide.Verdict{Now: now, At: now, Admitted: true}
	misplaced := false
	for _, n := range counters {
		if err == nil {
			err = n.answer(&v)
		}
		if err == nil && n.fits {
			n.Charged = true
			n.date(&v, now)
			n.trigger()
		}
		misplaced = misplaced || !n.holds(now)
	}
	if err == nil && misplaced {
		err = errMisplaced
	}
	return v, err
}

// giveBack takes off what counters were charged, as far as their windows are still open. Where it fails it reports whether
// nothing came of it, and nothing will. To undo also closes the windows that the charges opened.
func (s *store) giveBack(ctx context.Context, counters []*counter, undo bool) (untaken bool, err error) {
	if len(counters) == 0 {
		return false, nil
	}
	err = s.repeat(func() error {
		untaken = true
		err := s.client.Watch(ctx, func(tx *redis.Tx) error {
			if _, err := s.ask(ctx, tx.Pipelined, counters, (*counter).look); err != nil {
				return err
			}
			var open []*counter
			for _, n := range counters {
				if n.Charged && n.isOpen() {
					open = append(open, n)
				}
			}
			if len(open) == 0 {
				return nil
			}
			untaken = false
			_, err := s.ask(ctx, tx.TxPipelined, open, func(n *counter, ctx context.Context, p redis.Pipeliner) {
				n.giveBack(ctx, p, undo)
			})
			return err
		}, keys(counters)...)
		if errors.Is(err, redis.TxFailedErr) {
			untaken = true
			return errAgain
		}
		return err
	})
	if err == errAgain {
		err = errors.New("the counters change faster than they can be watched")
	}
	return untaken, err
}

// forget removes the counter of a claim.
func (s *store) forget(ctx context.Context, call *decide.Call, c *decide.Claim) (removed int64, err error) {
	err = s.repeat(func() error {
		n := newCounter(call, c, s.now())
		now, err := s.ask(ctx, s.transaction(n.key), []*counter{n}, (*counter).forget)
		if err == nil && !n.holds(now) {
			err = errAgain
		}
		removed += n.removed.Val()
		return err
	})
	return removed, err
}

func keys(counters []*counter) []string {
	keys := make([]string, len(counters))
	for i, n := range counters {
		keys[i] = n.key
	}
	return keys
}
