package ratelimit_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// A wrapper's call pauses the subjects of its rules, each for its own duration. The later end holds, and a rule without a duration goes on.
func TestPauseAfterACall(t *testing.T) {
	limiter, clock := limittest.New(t)
	far := ratelimit.Rule{Name: "far", Limit: 100, Per: time.Second, Pausable: true}
	near, plain := far, far
	near.Name, plain.Name, plain.Pausable = "near", "plain", false
	rules := wrap.NewRules("p.T.M", far, near, plain)
	ctx := t.Context()
	begin := func() (*wrap.Taken, error) {
		return wrap.Begin(ctx, rules.On(limiter), rules, wrap.Charge{Key: "ann", Cost: 1}, wrap.Charge{Key: "bob", Cost: 1}, wrap.Charge{Key: "eve", Cost: 1})
	}
	one, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	two, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	one.Pause(ctx, time.Minute, 0, time.Hour)
	two.Pause(ctx, 10*time.Second, -time.Second, 0)
	two.Pause(ctx)
	for rule, wants := range map[string]time.Duration{"far ann": time.Minute, "near bob": 0, "plain eve": 0, "far bob": 0} {
		name, key, _ := strings.Cut(rule, " ")
		d, err := limiter.Peek(ctx, ratelimit.Request{Rule: map[string]ratelimit.Rule{"far": far, "near": near, "plain": plain}[name], Key: key})
		if err != nil || d.RetryAfter != wants || d.Allowed != (wants == 0) {
			t.Errorf("%s: got %+v, error %v; want a pause of %s", rule, d, err, wants)
		}
	}
	_, err = begin()
	refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
	if !ok || refusal.RetryAfter != time.Minute {
		t.Errorf("got %v", err)
	}
	clock.Advance(time.Minute)
	if _, err = begin(); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	one.Pause(ended, 365*24*time.Hour) // the call's own context may have ended
	d, err := limiter.Peek(ctx, ratelimit.Request{Rule: far, Key: "ann"})
	if err != nil || d.RetryAfter != 30*24*time.Hour {
		t.Errorf("got %+v, error %v; a pause lasts at most 30 days", d, err)
	}
}

// The pause of any rule of a call holds the call. Resume wakes it at once, whichever of its rules decides in which line it waits. The clock stands
// still, so nothing else wakes it.
func TestResumeWakesCallsOfSeveralRules(t *testing.T) {
	for name, first := range map[string]ratelimit.Rule{
		"window": {Name: "first", Limit: 100, Per: time.Second}, "pausable": {Name: "first", Limit: 100, Per: time.Second, Pausable: true},
		"running": {Name: "first", Algorithm: ratelimit.Concurrency, Limit: 5},
	} {
		t.Run(name, func(t *testing.T) {
			limiter, clock := limittest.New(t)
			one := ratelimit.Request{Rule: first, Key: "ann"}
			two := ratelimit.Request{Rule: ratelimit.Rule{Name: "second", Limit: 100, Per: time.Second}, Key: "ann"}
			if err := limiter.Pause(t.Context(), time.Hour, two); err != nil {
				t.Fatal(err)
			}
			gone := make(chan error)
			go func() {
				_, err := limiter.Wait(t.Context(), one, two)
				gone <- err
			}()
			clock.AwaitSleepers(1)
			if err := limiter.Resume(t.Context(), two); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-gone:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				clock.Advance(time.Hour)
				t.Errorf("the call sleeps on after Resume; it ends with error %v", <-gone)
			}
		})
	}
}

// A call whose place has come asks whether a pause has begun. If the store fails to say, the failure policy decides.
func TestPlaceWhileTheStoreFails(t *testing.T) {
	rule := ratelimit.Rule{Name: "far", Algorithm: ratelimit.LeakyBucket, Limit: 1, Per: time.Minute, Pausable: true}
	for policy, goes := range map[ratelimit.FailurePolicy]bool{ratelimit.FailClosed: false, ratelimit.FailOpen: true} {
		clock := limittest.NewClock()
		store := limittest.NewOutage(clock)
		limiter := ratelimit.New(store, ratelimit.WithFailurePolicy(policy), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		q := ratelimit.Request{Rule: rule}
		if d, err := limiter.Allow(t.Context(), q); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		gone := make(chan error)
		go func() {
			_, err := limiter.Wait(t.Context(), q)
			gone <- err
		}()
		clock.AwaitSleepers(1)
		store.Begin(nil)
		clock.Advance(time.Minute)
		err := <-gone
		if _, failed := errors.AsType[*ratelimit.StoreError](err); failed == goes || (err == nil) != goes {
			t.Errorf("%s: got %v", policy, err)
		}
	}
}

// A pause holds the calls of its key alone, and not others that only have another rule with them in common.
func TestPauseHoldsItsKeyAlone(t *testing.T) {
	for name, first := range map[string]ratelimit.Rule{
		"window": {Name: "first", Limit: 100, Per: time.Second}, "running": {Name: "first", Algorithm: ratelimit.Concurrency, Limit: 5},
	} {
		t.Run(name, func(t *testing.T) {
			limiter, clock := limittest.New(t)
			user := ratelimit.Rule{Name: "user", Limit: 100, Per: time.Second}
			one, ann := ratelimit.Request{Rule: first}, ratelimit.Request{Rule: user, Key: "ann"}
			if err := limiter.Pause(t.Context(), time.Hour, ann); err != nil {
				t.Fatal(err)
			}
			gone := make(chan error, 2)
			wait := func(requests ...ratelimit.Request) {
				_, err := limiter.Wait(t.Context(), requests...)
				gone <- err
			}
			go wait(one, ann)
			clock.AwaitSleepers(1)
			go wait(one, ratelimit.Request{Rule: user, Key: "bob"})
			select {
			case err := <-gone:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("bob waits for the pause of ann")
			}
			if err := limiter.Resume(t.Context(), ann); err != nil {
				t.Fatal(err)
			}
			if err := <-gone; err != nil {
				t.Error(err)
			}
		})
	}
}

// A call that a pause holds asks again when the pause ends, also if others waited for permits before it.
func TestPauseBehindACallThatWaits(t *testing.T) {
	limiter, clock := limittest.New(t)
	run := ratelimit.Request{Rule: ratelimit.Rule{Name: "run", Algorithm: ratelimit.Concurrency, Limit: 1}}
	ann := ratelimit.Request{Rule: ratelimit.Rule{Name: "user", Limit: 100, Per: time.Second}, Key: "ann"}
	first, err := limiter.Allow(t.Context(), run)
	if err != nil || !first.Allowed {
		t.Fatal(first, err)
	}
	second, third := make(chan ratelimit.Decision, 1), make(chan error, 1)
	go func() {
		d, _ := limiter.Wait(t.Context(), run)
		second <- d
	}()
	clock.AwaitSleepers(1)
	if err := limiter.Pause(t.Context(), 100*time.Millisecond, ann); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := limiter.Wait(t.Context(), run, ann)
		third <- err
	}()
	clock.AwaitSleepers(2)
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := <-second
	if err := d.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Advance(100 * time.Millisecond)
	select {
	case err := <-third:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the call sleeps on after the pause has ended")
		clock.Advance(time.Second)
		<-third
	}
}

// A rule in shadow mode with a limit of 0 refuses every call, also one that a pause has held.
func TestShadowOfNothingAfterAPause(t *testing.T) {
	var admitted []ratelimit.Outcome
	l, clock := limittest.New(t, ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		if e.Kind == ratelimit.EventAdmitted {
			admitted = slices.Clone(e.Rules)
		}
	}))
	held := ratelimit.Rule{Name: "held", Limit: 10, Per: time.Minute, Wait: time.Hour}
	rules := wrap.NewRules("shop.T.M", held, ratelimit.Rule{Name: "shadow", Per: time.Minute, Mode: ratelimit.ModeShadow})
	if err := l.Pause(t.Context(), time.Minute, ratelimit.Request{Rule: held, Key: "k"}); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { result <- wrap.Take(t.Context(), rules.On(l), rules, "k", "k") }()
	clock.AwaitSleepers(1)
	clock.Advance(2 * time.Minute)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if len(admitted) != 2 || !admitted[1].Refused {
		t.Errorf("got %+v; the second rule refuses every call", admitted)
	}
}
