package limittest

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/memory"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// New returns a limiter that counts in memory, and its clock. The test fails if calls still sleep on the clock when the test ends.
func New(t testing.TB, options ...ratelimit.Option) (*ratelimit.Limiter, *Clock) {
	t.Helper()
	clock := NewClock()
	t.Cleanup(func() {
		clock.mu.Lock()
		defer clock.mu.Unlock()
		if n := len(clock.sleepers); n > 0 {
			t.Errorf("limittest: when the test ended, %d calls still waited for permits; advance the clock, or cancel their contexts", n)
		}
	})
	return ratelimit.New(NewOutage(clock), options...), clock
}

// Outage is a store in memory, on a [Clock], that fails on demand. Use it to test what a program does while its Redis is away.
type Outage struct {
	failing
	store *failingStore
}

// failing hides the methods of a store among those of an Outage.
type failing = ratelimit.Store

// NewOutage returns a store that works until Begin.
func NewOutage(clock *Clock) *Outage {
	memory := memory.New(clock.Now, memory.MaxKeys, memory.MaxBytes)
	store := &failingStore{Store: memory, clock: clock}
	memory.Failure = store.failure
	return &Outage{store, store}
}

// Begin makes the store fail with cause from now on. The store keeps its counts. A nil cause means the error "the store is away".
func (o *Outage) Begin(cause error) {
	cause = cmp.Or(cause, errors.New("the store is away"))
	o.store.cause.Store(&cause)
}

// End makes the store work again. Permits of [ratelimit.Concurrency] that calls could not give back meanwhile are back then.
func (o *Outage) End() { o.store.end() }

// failingStore is a store that fails if it has a cause.
type failingStore struct {
	ratelimit.Store
	clock *Clock
	cause atomic.Pointer[error]

	adjusting sync.Mutex
	late      []engine.Call // give back permits of calls that were over while the store failed
}

func (s *failingStore) end() {
	s.cause.Store(nil)
	s.adjusting.Lock()
	defer s.adjusting.Unlock()
	for i := range s.late {
		_ = s.Store.Adjust(context.Background(), &s.late[i])
	}
	s.late = nil
}

func (s *failingStore) failure() error {
	if cause := s.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

func (s *failingStore) Time() time.Time { return s.clock.Now() }

func (s *failingStore) Since(t time.Time) time.Duration { return s.clock.Now().Sub(t) }

func (s *failingStore) Sleep(ctx context.Context, d time.Duration, _ bool) { s.clock.Sleep(ctx, d) }

func (s *failingStore) Ping(context.Context, string, []*engine.Rule) error {
	if err := s.failure(); err != nil {
		return &backend.AwayError{Err: err}
	}
	return nil
}

func (s *failingStore) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	if err := s.failure(); err != nil {
		return engine.Verdict{}, err
	}
	return s.Store.Decide(ctx, call)
}

func (s *failingStore) Adjust(ctx context.Context, call *engine.Call) error {
	s.adjusting.Lock()
	defer s.adjusting.Unlock()
	err := s.failure()
	if err == nil {
		return s.Store.Adjust(ctx, call)
	}
	late := *call
	late.Claims = nil
	for _, c := range call.Claims {
		if c.Rule.Kind.Row().Releases && c.Delta < 0 {
			late.Claims = append(late.Claims, c)
		}
	}
	if len(late.Claims) > 0 {
		s.late = append(s.late, late)
	}
	return err
}

func (s *failingStore) Reset(ctx context.Context, call *engine.Call) (int, error) {
	if err := s.failure(); err != nil {
		return 0, err
	}
	return s.Store.Reset(ctx, call)
}
