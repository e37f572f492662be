package limittest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/internal/memory"
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
	working
	clock *Clock
	cause atomic.Pointer[error]

	adjusting sync.Mutex
	late      []engine.Call // give back permits of calls that were over while the store failed
}

// working is the store between outages.
type working = ratelimit.Store

// NewOutage returns a store that works until Begin.
func NewOutage(clock *Clock) *Outage {
	store := memory.New(clock.Now, memory.MaxKeys, memory.MaxBytes)
	o := &Outage{working: store, clock: clock}
	store.Failure = o.failure
	return o
}

// Begin makes the store fail with cause from now on. The store keeps its counts. A nil cause means the error "the store is away".
func (o *Outage) Begin(cause error) {
	if cause == nil {
		cause = errors.New("the store is away")
	}
	o.cause.Store(&cause)
}

// End makes the store work again. Permits of [ratelimit.Concurrency] that calls could not give back meanwhile are back then.
func (o *Outage) End() {
	o.cause.Store(nil)
	o.adjusting.Lock()
	defer o.adjusting.Unlock()
	for i := range o.late {
		_ = o.working.Adjust(context.Background(), &o.late[i])
	}
	o.late = nil
}

func (o *Outage) failure() error {
	if cause := o.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Time implements ratelimit.Store.
func (o *Outage) Time() time.Time { return o.clock.Now() }

// Since implements ratelimit.Store.
func (o *Outage) Since(t time.Time) time.Duration { return o.clock.Now().Sub(t) }

// Sleep implements ratelimit.Store.
func (o *Outage) Sleep(ctx context.Context, d time.Duration, _ bool) { o.clock.Sleep(ctx, d) }

// Ping implements ratelimit.Store.
func (o *Outage) Ping(context.Context, string, []*engine.Rule) error { return o.failure() }

// Decide implements ratelimit.Store.
func (o *Outage) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	if err := o.failure(); err != nil {
		return engine.Verdict{}, err
	}
	return o.working.Decide(ctx, call)
}

// Adjust implements ratelimit.Store.
func (o *Outage) Adjust(ctx context.Context, call *engine.Call) error {
	o.adjusting.Lock()
	defer o.adjusting.Unlock()
	err := o.failure()
	if err == nil {
		return o.working.Adjust(ctx, call)
	}
	late := *call
	late.Claims = nil
	for _, c := range call.Claims {
		if c.Rule.Kind.Row().Releases && c.Delta < 0 {
			late.Claims = append(late.Claims, c)
		}
	}
	if len(late.Claims) > 0 {
		o.late = append(o.late, late)
	}
	return err
}

// Reset implements ratelimit.Store.
func (o *Outage) Reset(ctx context.Context, call *engine.Call) (int, error) {
	if err := o.failure(); err != nil {
		return 0, err
	}
	return o.working.Reset(ctx, call)
}
