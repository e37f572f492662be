package breaker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Only failures in a row stop calls from trying. Replies are not failures.
func TestBreaker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, failures := New(Pause, nil), 0
		for range rapid.IntRange(1, 20).Draw(t, "tries") {
			err := rapid.SampledFrom([]error{nil, reply("LOADING"), io.EOF, errors.New("i/o timeout")}).Draw(t, "error")
			tried := false
			got := b.Try(t.Context(), func() error { tried = true; return err })
			if tried != (failures < maxFailures) || tried && got != err || !tried && !errors.As(got, new(Unsent)) {
				t.Fatalf("after %d failures in a row: tried %t, got %v", failures, tried, got)
			}
			if failures++; Reached(err) {
				failures = 0
			}
			if !tried {
				return // calls are not tried for a while
			}
		}
	})
}

// While the server fails, one call tries again after each pause, and no other call does until it ends. Once it has reached the server, all may.
func TestOneTryAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Pause, nil)
		ask := func(err error) (tried bool) {
			_ = b.Try(t.Context(), func() error { tried = true; return err })
			return tried
		}
		for range maxFailures {
			ask(io.EOF)
		}
		for _, err := range []error{io.EOF, io.EOF, reply("LOADING")} {
			time.Sleep(Pause)
			if ask(nil) {
				t.Error("a call tries before the pause is over")
			}
			time.Sleep(time.Nanosecond)
			tried := false
			_ = b.Try(t.Context(), func() error {
				tried = true
				time.Sleep(2 * Pause)
				if ask(nil) {
					t.Error("two calls try at the same time")
				}
				return err
			})
			if !tried {
				t.Error("no call tries after the pause")
			}
		}
		if !ask(io.EOF) || !ask(nil) || b.away.Load() {
			t.Error("calls do not try although the server was reached")
		}
	})
}

// A try that panics is a failure, and ends.
func TestPanicIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, tries := New(Pause, nil), 0
		for range maxFailures + 2 {
			func() {
				defer func() { _ = recover() }()
				_ = b.Try(t.Context(), func() error { tries++; panic("hook") })
			}()
		}
		if tries != maxFailures {
			t.Errorf("%d tries in a row, want %d", tries, maxFailures)
		}
		time.Sleep(Pause + time.Nanosecond)
		if err := b.Try(t.Context(), func() error { return nil }); err != nil || b.away.Load() {
			t.Error("after a panic no call tries again:", err)
		}
	})
}

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// A call that is not tried hears why the tries before it failed, also if something else has reached the server since.
func TestWhyNothingIsTried(t *testing.T) {
	b := New(time.Hour, nil)
	for range maxFailures {
		_ = b.Try(t.Context(), func() error { return io.EOF })
	}
	_ = b.Ask(t.Context(), func() error { return nil })
	if _, err := b.Begin(t.Context()); err == nil || err.Error() != "not tried again so soon after: EOF" {
		t.Errorf("got %v", err)
	}
}

// A caller that gives up says nothing about the server.
func TestCallerThatGivesUp(t *testing.T) {
	knocks := 0
	b := New(Pause, func(context.Context) error {
		knocks++
		return nil
	})
	for range 2 * maxFailures {
		if err := b.Ask(t.Context(), func() error { return fmt.Errorf("gone: %w", context.Canceled) }); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v", err)
		}
	}
	if knocks > 0 {
		t.Errorf("%d knocks after calls that gave up", knocks)
	}
	_ = b.Ask(t.Context(), func() error { return errors.New("away") })
	if _ = b.Ask(t.Context(), func() error { return nil }); knocks != 1 {
		t.Errorf("%d knocks after the server was lost, want 1", knocks)
	}
}
