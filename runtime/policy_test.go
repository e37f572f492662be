package ratelimit_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// A decision of a failure policy says so, also if it is a refusal by a block that this process counts.
func TestBlockByAPolicy(t *testing.T) {
	store := limittest.NewOutage(limittest.NewClock())
	l := ratelimit.New(store, ratelimit.WithFailurePolicy(ratelimit.FailLocal), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Minute, Block: time.Hour}, Key: "k"}
	store.Begin(nil)
	for call := range 3 {
		if d, err := l.Allow(t.Context(), q); err != nil || d.Allowed != (call == 0) || d.Source != ratelimit.SourcePolicy {
			t.Errorf("call %d: got %+v, error %v", call, d, err)
		}
	}
}

// A call that waited while the store failed, and that the store then admits, has no error.
func TestWaitOverAnOutage(t *testing.T) {
	clock := limittest.NewClock()
	store := limittest.NewOutage(clock)
	events := make(chan ratelimit.Event, 10)
	l := ratelimit.New(store, ratelimit.WithFailurePolicy(ratelimit.FailLocal), ratelimit.WithLogger(slog.New(slog.DiscardHandler)),
		ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
			if e.Kind == ratelimit.EventAdmitted {
				events <- *e
			}
		}))
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Algorithm: ratelimit.Concurrency, Limit: 1, Per: time.Hour}, Key: "k"}
	store.Begin(nil)
	first := allow(t, l, q)
	result := make(chan error, 1)
	go func() {
		_, err := l.Wait(t.Context(), q)
		result <- err
	}()
	clock.AwaitSleepers(1)
	store.End()
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	<-events
	if e := <-events; e.Source != ratelimit.SourceStore || e.Err != nil {
		t.Errorf("the call that waited is told with source %s and error %v", e.Source, e.Err)
	}
}
