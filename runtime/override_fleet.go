package ratelimit

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// SetRate is Override for all limiters of this prefix on the store, instead of any earlier SetRate of the rule: this one
// follows at once, the others within two seconds. The name is as for Override. It lasts as long as the store's data, also when
// programs restart. Unlike Redisson's setRate it keeps the history. What Override says in a process counts more there.
//
// On Redis the overrides are the hash <prefix>:overrides, by rule names: HSET ratelimit:overrides login '{"limit":5}' does
// the same by hand, and '{"per":"1d","burst":9,"mode":"shadow"}' has the rest, with durations as in directives.
//
// The error is a *RuleError about what no rule can have, a *StoreError, or wraps ctx's.
func (l *Limiter) SetRate(ctx context.Context, ruleName string, o Override) error {
	_, err := l.setRate(ctx, ruleName, o, false)
	return err
}

// TrySetRate is SetRate if the rule has none yet, else it changes nothing. It reports which. The error is as SetRate's.
func (l *Limiter) TrySetRate(ctx context.Context, ruleName string, o Override) (bool, error) {
	return l.setRate(ctx, ruleName, o, true)
}

// ClearRate ends what SetRate began. The error is a *StoreError, or wraps ctx's.
func (l *Limiter) ClearRate(ctx context.Context, ruleName string) error {
	return l.share(ctx, func(store decide.Settings, prefix string) error { return store.Unset(ctx, prefix, ruleName) })
}

func (l *Limiter) setRate(ctx context.Context, ruleName string, o Override, onlyNew bool) (set bool, err error) {
	if err := o.check(ruleName); err != nil {
		return false, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return false, err
	}
	err = l.share(ctx, func(store decide.Settings, prefix string) (err error) {
		set, err = store.Set(ctx, prefix, ruleName, string(text), onlyNew)
		return err
	})
	return set, err
}

// share changes the store's overrides, and follows. Where the change is made, a failure to read it back is no error of it.
func (l *Limiter) share(ctx context.Context, change func(decide.Settings, string) error) error {
	store := l.overrides.fleet.store
	if store == nil {
		return &StoreError{Err: errors.New("it keeps no overrides")}
	}
	if err := change(store, l.prefix.Value()); err != nil {
		return storeError(ctx, "", err)
	}
	l.overrides.read(ctx, l.prefix.Value())
	return nil
}

// fleetOverrides is what is known of the overrides in the store. The lock is that of overrides.
type fleetOverrides struct {
	store decide.Settings // nil if the limiter's store has none
	age   atomic.Int32    // of what is known

	texts     map[string]string
	overrides map[string]Override
	malformed []error
	failed    error // of the last attempt to read

	reading chan struct{} // closed when the attempt that calls started has ended; nil if there is none
	turn    int64         // how many attempts have begun
	known   int64         // the turn of the attempt that gave what is known
	timer   *time.Timer   // makes age go on: no call reads a clock for it
}

// What is known is read again by the first call that finds it due, in the background; where no call came for so long that it
// is stale, calls wait for it.
const (
	stale int32 = iota
	fresh
	due
)

// Together, staleAfter and patience stay under the two seconds that SetRate promises.
const (
	dueAfter   = time.Second
	staleAfter = 1800 * time.Millisecond
	patience   = 100 * time.Millisecond // how long a call waits at most
)

// follow keeps up with the store's overrides.
func (l *Limiter) follow(ctx context.Context) {
	if f := &l.overrides.fleet; f.store != nil && f.age.Load() != fresh {
		l.overrides.refresh(ctx, l.prefix.Value())
	}
}

func (s *overrides) refresh(ctx context.Context, prefix string) {
	if s.fleet.age.CompareAndSwap(due, fresh) {
		s.start(ctx, prefix)
		return
	}
	if s.fleet.age.Load() != stale {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.start(ctx, prefix):
	case <-ctx.Done():
	case <-timer.C:
		s.fleet.age.CompareAndSwap(stale, fresh) // no other call waits
	}
}

// start reads the store's overrides in the background, unless that is being done, and returns a channel that is closed then.
func (s *overrides) start(ctx context.Context, prefix string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.fleet.reading
	if done == nil {
		done = make(chan struct{})
		s.fleet.reading = done
		go func() {
			s.read(context.WithoutCancel(ctx), prefix)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.fleet.reading = nil
			close(done)
		}()
	}
	return done
}

// read reads the store's overrides. What is known stays if that fails, or if a later attempt was faster.
func (s *overrides) read(ctx context.Context, prefix string) {
	s.mu.Lock()
	s.fleet.turn++
	turn := s.fleet.turn
	s.mu.Unlock()

	texts, err := s.fleet.store.Settings(ctx, prefix)

	s.mu.Lock()
	changed := s.fleet.take(turn, texts, err)
	s.mu.Unlock()
	if changed {
		s.change(func(*overrides) {})
	}
	s.markFresh()
}

// take takes in an answer of the store, and reports whether it changes anything.
func (f *fleetOverrides) take(turn int64, texts map[string]string, err error) bool {
	f.failed = err
	if err != nil || turn < f.known {
		return false
	}
	f.known = turn
	if maps.Equal(texts, f.texts) {
		return false
	}
	f.texts, f.overrides, f.malformed = texts, make(map[string]Override, len(texts)), nil
	for name, text := range texts {
		if o, err := parseOverride(name, text); err != nil {
			f.malformed = append(f.malformed, err)
		} else {
			f.overrides[name] = o
		}
	}
	return true
}

// markFresh makes what is known fresh, for a while.
func (s *overrides) markFresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet.age.Store(fresh)
	if s.fleet.timer == nil {
		s.fleet.timer = time.AfterFunc(dueAfter, s.markOlder)
	} else {
		s.fleet.timer.Reset(dueAfter)
	}
}

// markOlder makes what is known older. While the store fails it does not become stale, so that no call waits in vain.
func (s *overrides) markOlder() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fleet.age.CompareAndSwap(fresh, due) {
		s.fleet.age.CompareAndSwap(due, stale)
	} else if s.fleet.failed == nil {
		s.fleet.timer.Reset(staleAfter - dueAfter)
	}
}

func (f *fleetOverrides) problems() []error {
	errs := append([]error(nil), f.malformed...)
	if f.failed != nil {
		errs = append(errs, &StoreError{Err: f.failed})
	}
	return errs
}
