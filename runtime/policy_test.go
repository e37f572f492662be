package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
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

// FailLocal counts the calls for which a store in memory has no room: its own counts have bounds of their own, of the same size.
func TestFailLocalOfAFullStore(t *testing.T) {
	for name, option := range map[string]memstore.Option{"keys": memstore.WithMaxKeys(10), "bytes": memstore.WithMaxBytes(6000)} {
		l := ratelimit.New(memstore.New(option), ratelimit.WithFailurePolicy(ratelimit.FailLocal), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		rule := ratelimit.Rule{Name: "r", Limit: 2, Per: time.Hour}
		byPolicy, full := 0, 0
		for user := range 1000 {
			for call := range 3 {
				d, err := l.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: fmt.Sprint(user)})
				if _, failed := errors.AsType[*ratelimit.StoreError](err); failed {
					full++
					continue
				}
				if err != nil || d.Allowed != (call < 2) {
					t.Fatalf("%s: call %d of user %d: %+v, error %v", name, call, user, d, err)
				}
				if d.Source == ratelimit.SourcePolicy {
					byPolicy++
				}
			}
			if full == 0 && byPolicy == 3*5 { // half of the room
				break
			}
		}
		if byPolicy != 3*5 || full > 0 {
			t.Errorf("%s: the policy decides %d calls, and %d fail", name, byPolicy, full)
		}
	}
}
