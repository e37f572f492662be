package limittest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// sends returns a limited function.
func sends(limiter *ratelimit.Limiter, rules ...ratelimit.Rule) func(context.Context) error {
	prepared := wrap.NewRules("sms.Sender.Send", rules...)
	subjects := make([]string, len(rules))
	return func(ctx context.Context) error { return wrap.Take(ctx, prepared.On(limiter), prepared, subjects...) }
}

func TestAdvance(t *testing.T) {
	limiter, clock := limittest.New(t)
	send := sends(limiter, ratelimit.Rule{Name: "minute", Limit: 2, Per: time.Minute}, ratelimit.Rule{Name: "day", Limit: 3, Cron: "@daily"},
		ratelimit.Rule{Name: "here", Limit: 3, Per: time.Hour, Scope: ratelimit.ScopeInstance})
	call := func() error { return send(t.Context()) }
	if n := limittest.Exhaust(t, call); n != 2 {
		t.Errorf("admitted %d; expected 2", n)
	}
	limittest.RequireRefused(t, call())
	if refusal := limittest.RequireRefused(t, fmt.Errorf("send: %w", call()), "minute"); refusal.RetryAfter != time.Minute {
		t.Errorf("got %v", refusal)
	}
	clock.Advance(time.Minute - time.Microsecond)
	limittest.RequireRefused(t, call(), "minute")
	clock.Advance(time.Microsecond)
	limittest.RequireAllowed(t, call())
	limittest.RequireRefused(t, call(), "day", "here")
	clock.Advance(time.Hour)
	limittest.RequireRefused(t, call(), "day")
	clock.Advance(11 * time.Hour)
	limittest.RequireAllowed(t, call())
}

// Overrides end by the test's clock.
func TestOverrideEnds(t *testing.T) {
	limiter, clock := limittest.New(t)
	send := sends(limiter, ratelimit.Rule{Name: "minute", Limit: 5, Per: time.Minute})
	for name, set := range map[string]func(ratelimit.Override) error{
		"everywhere": func(v ratelimit.Override) error { return limiter.Overrides().Set(t.Context(), "minute", v) },
		"here":       func(v ratelimit.Override) error { return limiter.Overrides().SetLocal("minute", v) },
	} {
		if err := set(ratelimit.Override{Limit: new(int64(2)), Until: clock.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		call := func() error { return send(t.Context()) }
		for after, expected := range []int{2, 5} {
			if n := limittest.Exhaust(t, call); n != expected {
				t.Errorf("%s: admitted %d after %d hours; expected %d", name, n, after, expected)
			}
			clock.Advance(time.Hour)
		}
	}
}

// Waiting calls are admitted in order, each at its time on the clock and not before, even under rules that keep no place.
func TestWaiting(t *testing.T) {
	for name, rules := range map[string][]ratelimit.Rule{
		"a place": {{Name: "r", Limit: 1, Per: time.Hour, Wait: 24 * time.Hour}},
		"two stores": {{Name: "r", Limit: 1, Per: time.Hour, Wait: 24 * time.Hour},
			{Name: "l", Limit: 1, Per: time.Hour, Wait: 24 * time.Hour, Scope: ratelimit.ScopeInstance}},
		"no place": {{Name: "b", Limit: 1, Per: time.Hour, Algorithm: ratelimit.LeakyBucket, Wait: 24 * time.Hour},
			{Name: "r", Limit: 1, Per: time.Hour, Wait: 24 * time.Hour}},
	} {
		limiter, clock := limittest.New(t)
		send := sends(limiter, rules...)
		limittest.RequireAllowed(t, send(t.Context()))
		done := make(chan error, 3)
		for n := range 3 {
			go func() { done <- send(t.Context()) }()
			clock.AwaitSleepers(n + 1)
		}
		for left := 2; left >= 0; left-- {
			clock.Advance(time.Hour - time.Second)
			runtime.Gosched()
			if len(done) > 0 {
				t.Fatalf("%s: a call was admitted a second early", name)
			}
			clock.Advance(time.Second)
			limittest.RequireAllowed(t, <-done)
			clock.AwaitSleepers(left)
		}
	}
}

func TestGivingUp(t *testing.T) {
	var events []ratelimit.EventKind
	limiter, clock := limittest.New(t, ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) { events = append(events, e.Kind) }))
	send := sends(limiter, ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour, Wait: time.Hour})
	limittest.RequireAllowed(t, send(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- send(ctx) }()
	clock.AwaitSleepers(1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(events) != 2 || events[1] != ratelimit.EventAbandoned {
		t.Errorf("got %v", events)
	}
	clock.Advance(time.Hour)
	limittest.RequireAllowed(t, send(t.Context())) // the place was given back
}

// A call that gave up sleeps no more when the test ends.
func TestNoSleepersAtTheEnd(t *testing.T) {
	var f failure
	limiter, clock := limittest.New(&f)
	send := sends(limiter, ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour, Wait: time.Hour})
	limittest.RequireAllowed(t, send(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- send(ctx) }()
	clock.AwaitSleepers(1)
	cancel()
	<-done
	if f.last[0](); f.error != "" {
		t.Error(f.error)
	}
}

// Users see the methods of an Outage in its documentation.
func TestOutagePublishesItsOwnMethodsOnly(t *testing.T) {
	outage, store := reflect.TypeFor[*limittest.Outage](), reflect.TypeFor[ratelimit.Store]()
	for m := range outage.Methods() {
		if _, needed := store.MethodByName(m.Name); !needed && m.Name != "Begin" && m.Name != "End" {
			t.Errorf("%s is published", m.Name)
		}
	}
	for _, f := range reflect.VisibleFields(outage.Elem()) {
		if f.IsExported() {
			t.Errorf("the field %s is published", f.Name)
		}
	}
}

func TestOutage(t *testing.T) {
	clock := limittest.NewClock()
	store := limittest.NewOutage(clock)
	rule := ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour}
	closed, local := sends(ratelimit.New(store), rule), sends(ratelimit.New(store, ratelimit.WithFailurePolicy(ratelimit.FailLocal)), rule)
	limittest.RequireAllowed(t, closed(t.Context()))
	other := ratelimit.Request{Rule: ratelimit.PerHour(1)}
	before, err := ratelimit.New(store).Allow(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	for _, cause := range []error{errors.New("no route"), nil} {
		store.Begin(cause)
		if err := ratelimit.New(store).Ping(t.Context()); err == nil || cause != nil && !errors.Is(err, cause) {
			t.Errorf("Ping: %v", err)
		}
		err := closed(t.Context())
		if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok || cause != nil && !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	}
	limittest.RequireAllowed(t, local(t.Context()))
	limittest.RequireRefused(t, local(t.Context()), "r")
	if _, err := ratelimit.New(store).Reset(t.Context(), ratelimit.Request{Rule: rule}); err == nil {
		t.Error("a store that is away forgot counts")
	}
	if err := before.Refund(t.Context()); err == nil {
		t.Error("a store that is away gave permits back")
	}
	operator := ratelimit.New(store)
	_, rules := operator.Rules(t.Context())
	for name, err := range map[string]error{
		"override": operator.Overrides().Set(t.Context(), "r", ratelimit.Override{Limit: new(int64(2))}),
		"clear":    operator.Overrides().Clear(t.Context(), "r", ""), "rules": rules,
		"block": operator.Block(t.Context(), time.Hour, ratelimit.Request{Rule: rule}),
	} {
		if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok {
			t.Errorf("%s, by a store that is away: got %v", name, err)
		}
	}
	store.End()
	if err := ratelimit.New(store).Ping(t.Context()); err != nil {
		t.Error(err)
	}
	limittest.RequireRefused(t, closed(t.Context()), "r") // the store has kept its counts
	if n, err := ratelimit.New(store).Reset(t.Context(), other); n != 1 || err != nil {
		t.Errorf("forgot %d counts, error %v", n, err)
	}
	clock.Advance(time.Hour)
	limittest.RequireAllowed(t, closed(t.Context()))
}

// A call that ends while the store is away does not hold its permit for ever.
func TestOutageOfARunningCall(t *testing.T) {
	store := limittest.NewOutage(limittest.NewClock())
	limiter := ratelimit.New(store)
	rules := wrap.NewRules("report.Maker.Make", ratelimit.Rule{Name: "make", Limit: 1, Algorithm: ratelimit.Concurrency})
	begin := func() (*wrap.Taken, error) {
		return wrap.Begin(t.Context(), rules.On(limiter), rules, wrap.Charge{Cost: 1})
	}
	for range 3 {
		taken, err := begin()
		if err != nil {
			t.Fatal(err)
		}
		_, err = begin()
		limittest.RequireRefused(t, err, "make")
		store.Begin(nil)
		taken.Release(t.Context())
		store.End()
	}
}

// While the store is away, rules of instance scope still count, whatever the failure policy of the others.
func TestOutageOfAPart(t *testing.T) {
	store := limittest.NewOutage(limittest.NewClock())
	send := sends(ratelimit.New(store), ratelimit.Rule{Name: "here", Limit: 2, Per: time.Hour, Scope: ratelimit.ScopeInstance},
		ratelimit.Rule{Name: "fleet", Limit: 1, Per: time.Hour, OnError: ratelimit.FailOpen})
	store.Begin(nil)
	if n := limittest.Exhaust(t, func() error { return send(t.Context()) }); n != 2 {
		t.Errorf("admitted %d; expected 2", n)
	}
	limittest.RequireRefused(t, send(t.Context()), "here")
}

// The clock does not go back, and a sleep of zero or with an ended context returns at once.
func TestClockWithoutSleep(t *testing.T) {
	clock := limittest.NewClock()
	ended, end := context.WithCancel(t.Context())
	end()
	clock.Advance(0)
	clock.Sleep(t.Context(), 0)
	clock.Sleep(t.Context(), -time.Second)
	clock.Sleep(ended, time.Second)
	defer func() {
		if got := recover(); got != "limittest.Clock.Advance: found -1s; expected 0 or more" {
			t.Errorf("panic %v", got)
		}
	}()
	clock.Advance(-time.Second)
}

// A sleeper wakes when the clock reaches its time, and not before.
func TestClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := limittest.NewClock()
		began := clock.Now()
		sleeps := rapid.SliceOfN(rapid.Int64Range(1, 20), 1, 8).Draw(t, "sleeps")
		woke := make([]time.Time, len(sleeps))
		var group sync.WaitGroup
		for i, d := range sleeps {
			group.Go(func() {
				clock.Sleep(context.Background(), time.Duration(d))
				woke[i] = clock.Now()
			})
		}
		clock.AwaitSleepers(len(sleeps))
		step := time.Duration(rapid.Int64Range(1, 25).Draw(t, "step"))
		for clock.Now().Sub(began) < 20 {
			clock.Advance(step)
		}
		group.Wait()
		for i, d := range sleeps {
			if woke[i].Sub(began) < time.Duration(d) {
				t.Fatalf("a sleep of %d ended after %d", d, woke[i].Sub(began))
			}
		}
	})
}

// failure is a test that fails.
type failure struct {
	testing.TB
	fatal string
	last  []func()
	error string
}

func (f *failure) Helper()                      {}
func (f *failure) Fatalf(s string, args ...any) { f.fatal = fmt.Sprintf(s, args...) }
func (f *failure) Errorf(s string, args ...any) { f.error = fmt.Sprintf(s, args...) }
func (f *failure) Cleanup(last func())          { f.last = append(f.last, last) }

func TestAssertionsFail(t *testing.T) {
	refused := &ratelimit.TooManyRequestsError{Violations: []ratelimit.Violation{{Rule: "a"}, {Rule: "b"}}}
	for want, assert := range map[string]func(testing.TB){
		"expected that the call is allowed; got broken":            func(t testing.TB) { limittest.RequireAllowed(t, errors.New("broken")) },
		"expected a refusal; got <nil>":                            func(t testing.TB) { limittest.RequireRefused(t, nil) },
		"expected a refusal by a and c; got broken":                func(t testing.TB) { limittest.RequireRefused(t, errors.New("broken"), "a", "c") },
		"expected a refusal by a and c; got one by a and b":        func(t testing.TB) { limittest.RequireRefused(t, refused, "a", "c") },
		"expected that the call is allowed or refused; got broken": func(t testing.TB) { limittest.Exhaust(t, func() error { return errors.New("broken") }) },
		"expected a refusal; got none in 1000000 calls":            func(t testing.TB) { limittest.Exhaust(t, func() error { return nil }) },
	} {
		var f failure
		if assert(&f); f.fatal != want {
			t.Errorf("got %q; expected %q", f.fatal, want)
		}
	}
}

func TestSleepersAtTheEnd(t *testing.T) {
	var f failure
	limiter, clock := limittest.New(&f)
	send := sends(limiter, ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour, Wait: time.Hour})
	limittest.RequireAllowed(t, send(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- send(ctx) }()
	clock.AwaitSleepers(1)
	f.last[0]()
	if f.error == "" {
		t.Error("a call that sleeps after the test was not noticed")
	}
	cancel()
	<-done
}

// TestSynctest is the example in the package's documentation.
func TestSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := ratelimit.New(memstore.New())
		send := sends(limiter, ratelimit.Rule{Name: "r", Limit: 3, Per: time.Minute})
		if n := limittest.Exhaust(t, func() error { return send(t.Context()) }); n != 3 {
			t.Errorf("admitted %d; expected 3", n)
		}
		time.Sleep(time.Minute)
		limittest.RequireAllowed(t, send(t.Context()))

		began, slow := time.Now(), sends(limiter, ratelimit.Rule{Name: "w", Limit: 1, Per: time.Minute, Wait: time.Hour})
		for range 3 {
			limittest.RequireAllowed(t, slow(t.Context()))
		}
		if waited := time.Since(began); waited != 2*time.Minute {
			t.Errorf("waited %v; expected 2m", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		limittest.RequireRefused(t, slow(ctx), "w") // at once: its place comes after the deadline
	})
}
