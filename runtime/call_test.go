package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// allow decides requests on a limiter.
func allow(t *testing.T, l *ratelimit.Limiter, requests ...ratelimit.Request) ratelimit.Decision {
	t.Helper()
	d, err := l.Allow(context.Background(), requests...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A call asks for two permits of one budget where two of its rules share it.
var shared = ratelimit.Rule{Name: "shared", Limit: 5, Per: time.Hour}

func with(change func(*ratelimit.Rule)) ratelimit.Request {
	rule := shared
	change(&rule)
	return ratelimit.Request{Rule: rule, Key: "k"}
}

// Of a rule that enforces and one that only reports, both of one budget, the former sets the limit, in either order.
func TestSharedBudgetOfTwoModes(t *testing.T) {
	enforced := with(func(r *ratelimit.Rule) { r.Limit = 3 })
	for _, mode := range []ratelimit.Mode{ratelimit.ModeShadow, ratelimit.ModeTrigger} {
		watched := with(func(r *ratelimit.Rule) { r.Mode = mode; r.Limit = 1000 })
		for _, requests := range [][]ratelimit.Request{{enforced, watched}, {watched, enforced}} {
			l := ratelimit.New(memstore.New())
			if d := allow(t, l, requests...); !d.Allowed {
				t.Errorf("%v: 2 permits of 3 are refused: %+v", mode, d)
			}
			if d := allow(t, l, requests...); d.Allowed {
				t.Errorf("%v: 4 permits of 3 are admitted", mode)
			}
		}
	}
}

// The terms of rules that share a budget are the strictest: the shorter wait, and whichever block there is.
func TestSharedBudgetOfTwoTerms(t *testing.T) {
	blocking := with(func(r *ratelimit.Rule) { r.Block = 24 * time.Hour })
	longer := with(func(r *ratelimit.Rule) { r.Block = 48 * time.Hour })
	first := ratelimit.Request{Rule: ratelimit.Rule{Name: "first", Limit: 9, Per: time.Hour, Block: time.Minute}, Key: "k"}
	for _, c := range []struct {
		requests []ratelimit.Request
		delay    time.Duration
	}{
		{[]ratelimit.Request{with(func(*ratelimit.Rule) {}), blocking}, 24 * time.Hour},
		{[]ratelimit.Request{blocking, with(func(*ratelimit.Rule) {})}, 24 * time.Hour},
		{[]ratelimit.Request{blocking, longer}, 48 * time.Hour},
		{[]ratelimit.Request{longer, blocking}, 48 * time.Hour},
		{[]ratelimit.Request{first, with(func(*ratelimit.Rule) {}), blocking}, 24 * time.Hour},
	} {
		now := time.Unix(1_000_000, 0)
		l := ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { return now })))
		for range 2 {
			if d := allow(t, l, c.requests...); !d.Allowed {
				t.Fatalf("4 permits of 5 are refused: %+v", d)
			}
		}
		if d := allow(t, l, c.requests...); d.Allowed || d.RetryAfter != c.delay {
			t.Errorf("got %+v, expected a refusal for %s", d, c.delay)
		}
		now = now.Add(2 * time.Hour)
		if d := allow(t, l, c.requests...); d.Allowed || d.RetryAfter != c.delay-2*time.Hour {
			t.Errorf("got %+v, expected a refusal for %s", d, c.delay-2*time.Hour)
		}
	}
}

// Each call names one member of a budget: two would be checked as if the other were not there.
func TestTwoMembersInOneCall(t *testing.T) {
	l := ratelimit.New(memstore.New())
	rule := ratelimit.Rule{Name: "strangers", Distinct: "{who}", Limit: 1, Per: time.Hour}
	var keyError *ratelimit.KeyError
	_, err := l.Allow(context.Background(),
		ratelimit.Request{Rule: rule, Key: "k", Member: "a"}, ratelimit.Request{Rule: rule, Key: "k", Member: "b"})
	if !errors.As(err, &keyError) {
		t.Errorf("got %v, expected a KeyError", err)
	}
	same := ratelimit.Request{Rule: rule, Key: "k", Member: "a"}
	if d := allow(t, l, same, ratelimit.Request{Rule: rule, Key: "other", Member: "b"}); !d.Allowed {
		t.Errorf("got %+v", d)
	}
}

// A program's wait is bounded by the rule's queue as well.
func TestQueueOfARequest(t *testing.T) {
	l := ratelimit.New(memstore.New())
	r := ratelimit.Request{Rule: ratelimit.Rule{
		Name: "r", Limit: 1, Per: 20 * time.Millisecond, Algorithm: ratelimit.LeakyBucket, Wait: time.Hour, Queue: 2,
	}}
	queue := make(chan ratelimit.Decision)
	for range 10 {
		go func() {
			d, err := l.Wait(context.Background(), r)
			if err != nil {
				t.Error(err)
			}
			queue <- d
		}()
	}
	admitted := 0
	for range 10 {
		if d := <-queue; d.Allowed {
			admitted++
		}
	}
	if admitted >= 10 {
		t.Errorf("all of 10 waited in a queue of 2")
	}
}

// A cost that adds up beyond 64 bits does not start again from nothing.
func TestSumOfHugeCosts(t *testing.T) {
	fired := 0
	l := ratelimit.New(memstore.New(), ratelimit.WithTrigger(func(_ context.Context, hit ratelimit.Trigger) {
		if fired++; hit.Used < hit.Limit {
			t.Errorf("got %+v", hit)
		}
	}))
	q := with(func(r *ratelimit.Rule) { r.Mode = ratelimit.ModeTrigger; r.Algorithm = ratelimit.FixedWindow })
	q.Cost = 1 << 62
	allow(t, l, q, q, q)
	if fired != 3 {
		t.Errorf("fired %d times, expected once for each rule", fired)
	}
}
