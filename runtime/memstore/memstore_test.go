package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// A full store refuses new subjects as long as all its counts are live. Calls of known subjects are not affected.
func TestWithMaxKeys(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	store := memstore.New(memstore.WithMaxKeys(3), memstore.WithClock(func() time.Time { return now }))
	limiter := ratelimit.New(store)
	ctx := context.Background()
	rule := ratelimit.Rule{Name: "r", Limit: 2, Per: time.Minute}
	allow := func(key string) (ratelimit.Decision, error) {
		return limiter.Allow(ctx, ratelimit.Request{Rule: rule, Key: key})
	}
	for i := range 3 {
		if d, err := allow(fmt.Sprint(i)); err != nil || !d.Allowed {
			t.Fatalf("subject %d: %+v, %v", i, d, err)
		}
	}
	_, err := allow("new")
	if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok {
		t.Fatalf("a fourth subject: %v, want a *StoreError", err)
	}
	if d, err := limiter.Peek(ctx, ratelimit.Request{Rule: rule, Key: "new"}); err != nil || !d.Allowed {
		t.Errorf("a peek at a fourth subject, which takes no place: %+v, %v", d, err)
	}
	for i := range 3 {
		if d, err := allow(fmt.Sprint(i)); err != nil || !d.Allowed {
			t.Errorf("subject %d again: %+v, %v", i, d, err)
		}
		if d, err := allow(fmt.Sprint(i)); err != nil || d.Allowed {
			t.Errorf("subject %d was forgotten: %+v, %v", i, d, err)
		}
	}
	now = now.Add(time.Minute)
	for i := range 3 {
		if d, err := allow(fmt.Sprint("new", i)); err != nil || !d.Allowed {
			t.Errorf("a new subject after the others expired: %+v, %v", d, err)
		}
	}
	if _, err := allow("one more"); err == nil {
		t.Error("a fourth new subject was admitted")
	}
}

// A store of fewer keys than one keeps one.
func TestFewestKeys(t *testing.T) {
	for _, n := range []int{1, 0, -1} {
		limiter := ratelimit.New(memstore.New(memstore.WithMaxKeys(n)))
		for i, key := range []string{"a", "a", "b"} {
			_, err := limiter.Allow(t.Context(), ratelimit.Request{Rule: ratelimit.PerHour(5), Key: key})
			if _, failed := errors.AsType[*ratelimit.StoreError](err); failed != (key == "b") {
				t.Errorf("%d keys: call %d of %s: got error %v", n, i, key, err)
			}
		}
	}
}

func TestWithMaxBytes(t *testing.T) {
	for n, full := range map[int64]bool{-1: true, 0: true, 1: true, 1 << 20: false} {
		limiter := ratelimit.New(memstore.New(memstore.WithMaxBytes(n)))
		_, err := limiter.Allow(t.Context(), ratelimit.Request{Rule: ratelimit.PerMinute(1)})
		if _, failed := errors.AsType[*ratelimit.StoreError](err); failed != full {
			t.Errorf("a store of %d bytes: got error %v", n, err)
		}
	}
}

// The store works with any clock, even one that shows the zero time.
func TestClockBefore1970(t *testing.T) {
	for _, start := range []time.Time{{}, time.Unix(-1e6, 0), time.Unix(0, 0)} {
		for _, rule := range []ratelimit.Rule{
			{Limit: 2, Per: time.Minute},
			{Algorithm: ratelimit.FixedWindow, Limit: 2, Per: time.Minute},
			{Algorithm: ratelimit.TokenBucket, Limit: 2, Per: time.Minute},
			{Algorithm: ratelimit.TokenBucket, Limit: 2, Per: time.Minute, Prepay: true},
			{Algorithm: ratelimit.SlidingCounter, Limit: 2, Per: time.Minute},
			{Limit: 2, Cron: "* * * * *"},
		} {
			now := start
			limiter := ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { return now })))
			request := ratelimit.Request{Rule: rule, Key: "k"}
			admitted := 0
			for range 10 {
				d, err := limiter.Allow(context.Background(), request)
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					admitted++
				} else if d.RetryAfter <= 0 || d.RetryAfter > 2*time.Minute {
					t.Errorf("%v from %v: retry after %v", rule.Window(), start, d.RetryAfter)
				}
			}
			if admitted < 2 || admitted > 3 { // a prepaid bucket goes into debt once
				t.Errorf("%v from %v: admitted %d of 2", rule.Window(), start, admitted)
			}
		}
	}
}

// A panic in a function of the program, which the caller recovers, holds no lock: calls of the same key go on.
func TestPanicsOfTheProgram(t *testing.T) {
	on := ""
	check := func(part string) {
		if on == part {
			panic("a bug of the program")
		}
	}
	limiter := ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { check("clock"); return time.Unix(1, 0) })),
		ratelimit.WithObserver(func(context.Context, *ratelimit.Event) { check("observer") }),
		ratelimit.WithTrigger(func(context.Context, ratelimit.Trigger) { check("trigger") }))
	for _, part := range []string{"clock", "observer", "trigger"} {
		rule := ratelimit.Rule{Name: part, Limit: 1000, Per: time.Hour}
		ask := []ratelimit.Request{{Rule: rule}, {Rule: ratelimit.Rule{Name: part + "2", Limit: 1, Per: time.Hour, Mode: ratelimit.ModeTrigger}}}
		calls := map[string]func() error{
			"Allow": func() error { _, err := limiter.Allow(context.Background(), ask[0]); return err },
			"two":   func() error { _, err := limiter.Allow(context.Background(), ask...); return err },
			"Peek":  func() error { _, err := limiter.Peek(context.Background(), ask...); return err },
			"Reset": func() error { _, err := limiter.Reset(context.Background(), ask...); return err },
		}
		for name, call := range calls {
			on = part
			func() {
				defer func() { _ = recover() }()
				_ = call()
			}()
			on = ""
			done := make(chan error, 1)
			go func() { done <- call() }()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("%s after a panic in the %s: %v", name, part, err)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s waits for ever after a panic in the %s", name, part)
			}
		}
	}
}
