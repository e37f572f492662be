package behaviour_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// onEveryWindow runs a scenario for each store and each kind of window, whose history a changed limit counts exactly.
func onEveryWindow(t *testing.T, scenario func(*testing.T, *subject, ratelimit.Request)) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for name, rule := range map[string]ratelimit.Rule{
			"sliding-window":  {Per: time.Hour},
			"fixed-window":    {Per: time.Hour, Algorithm: ratelimit.FixedWindow},
			"sliding-counter": {Per: time.Hour, Algorithm: ratelimit.SlidingCounter},
			"calendar":        {Cron: "0 0 0 1 1 *"},
		} {
			rule.Name, rule.Limit = name, 3
			t.Run(name, func(t *testing.T) { scenario(t, s, ratelimit.Request{Rule: rule, Key: "k"}) })
		}
	})
}

func override(t *testing.T, l *ratelimit.Limiter, rule string, o ratelimit.Override) {
	t.Helper()
	if err := l.Override(rule, o); err != nil {
		t.Fatal(err)
	}
}

func setRate(t *testing.T, l *ratelimit.Limiter, rule string, o ratelimit.Override) {
	t.Helper()
	if err := l.SetRate(context.Background(), rule, o); err != nil {
		t.Fatal(err)
	}
}

// A raised limit admits the difference, a lowered one nothing until enough has left: the history goes on.
func TestOverrideCountsTheHistory(t *testing.T) {
	onEveryWindow(t, func(t *testing.T, s *subject, q ratelimit.Request) {
		name := q.Rule.Name
		for range 3 {
			s.admit(t, q)
		}
		s.refuse(t, q)
		override(t, s.limiter, name, ratelimit.Override{Limit: 5})
		s.admit(t, q)
		override(t, s.limiter, name, ratelimit.Override{Limit: 2})
		if d := s.refuse(t, q); d.Violations[0].Limit != 2 || d.Violations[0].Remaining != 0 {
			t.Errorf("violation %+v", d.Violations[0])
		}
		override(t, s.limiter, name, ratelimit.Override{Limit: 5})
		s.admit(t, q)
		s.refuse(t, q)
		s.limiter.ClearOverride(name)
		s.refuse(t, q)
	})
}

// Under a lowered limit, permits that are still in the window count, however the limit was raised and lowered before.
func TestOverrideLosesNoPermit(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 4, Per: time.Hour}, Key: "k"}
		taken := s.admit(t, q)
		s.admit(t, q)
		override(t, s.limiter, "r", ratelimit.Override{Limit: 3})
		s.admit(t, q) // trims the history to three
		s.refuse(t, q)
		s.limiter.ClearOverride("r")
		s.admit(t, q)
		d := s.refuse(t, q)
		if want := taken.At.Add(time.Hour); !d.At.Add(d.RetryAfter).Equal(want) {
			t.Errorf("retry at %v, want an hour after the first permit, %v", d.At.Add(d.RetryAfter), want)
		}
	})
}

// A bucket's history is when it is full again: a raised limit fills it faster.
func TestOverrideOfABucket(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 10, Per: time.Hour, Algorithm: ratelimit.TokenBucket}, Key: "k", Cost: 10}
		first := s.admit(t, q)
		q.Cost = 1
		if d := s.refuse(t, q); !d.At.Add(d.RetryAfter).Equal(first.At.Add(6 * time.Minute)) {
			t.Errorf("a permit at %v, want after a tenth of the hour", d.At.Add(d.RetryAfter))
		}
		override(t, s.limiter, "r", ratelimit.Override{Limit: 20})
		if d := s.refuse(t, q); !d.At.Add(d.RetryAfter).Equal(first.At.Add(3 * time.Minute)) {
			t.Errorf("a permit at %v, want after a twentieth of the hour", d.At.Add(d.RetryAfter))
		}
	})
}

// While two programs disagree on a limit, each counts what both have admitted, and admits up to its own.
func TestOverrideThatOthersDoNotKnow(t *testing.T) {
	onEveryWindow(t, func(t *testing.T, s *subject, q ratelimit.Request) {
		other := &subject{limiter: s.another()}
		override(t, other.limiter, q.Rule.Name, ratelimit.Override{Limit: 5})
		s.admit(t, q)
		other.admit(t, q)
		s.admit(t, q)
		s.refuse(t, q)
		other.admit(t, q)
		other.admit(t, q)
		other.refuse(t, q)
		s.refuse(t, q)
	})
}

// Another period starts from nothing; the way back finds what is still known.
func TestOverrideOfThePeriod(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for _, algorithm := range []ratelimit.Algorithm{
			ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.SlidingCounter,
		} {
			q := ratelimit.Request{Rule: ratelimit.Rule{Name: algorithm.String(), Limit: 1, Per: time.Hour, Algorithm: algorithm}, Key: "k"}
			s.admit(t, q)
			override(t, s.limiter, q.Rule.Name, ratelimit.Override{Per: 2 * time.Hour})
			s.admit(t, q)
			d := s.refuse(t, q)
			if d.RetryAfter <= time.Hour || !strings.HasSuffix(d.Violations[0].Window, "2h") && algorithm != ratelimit.SlidingCounter {
				t.Errorf("%+v", d)
			}
			s.limiter.ClearOverride(q.Rule.Name)
			if d := s.refuse(t, q); d.RetryAfter > time.Hour+time.Minute {
				t.Errorf("%+v", d)
			}
			override(t, s.limiter, q.Rule.Name, ratelimit.Override{Per: 2 * time.Hour})
			if err := s.limiter.Reset(context.Background(), q); err != nil {
				t.Fatal(err)
			}
			s.admit(t, q)
		}
	})
}

func TestOverrideOfTheMode(t *testing.T) {
	s := inMemory(newClock())
	shadow := ratelimit.Rule{Name: "shadow", Limit: 1, Per: time.Hour, Mode: ratelimit.ModeShadow}
	strict := ratelimit.Rule{Name: "strict", Limit: 1, Per: time.Hour, Block: time.Minute}
	for _, rule := range []ratelimit.Rule{shadow, strict} {
		s.admit(t, ratelimit.Request{Rule: rule, Key: "k"})
	}
	s.admit(t, ratelimit.Request{Rule: shadow, Key: "k"})
	override(t, s.limiter, "shadow", ratelimit.Override{Mode: ratelimit.ModeEnforceNow})
	s.refuse(t, ratelimit.Request{Rule: shadow, Key: "k"})
	s.refuse(t, ratelimit.Request{Rule: strict, Key: "k"})
	override(t, s.limiter, "strict", ratelimit.Override{Mode: ratelimit.ModeShadow})
	if d := s.admit(t, ratelimit.Request{Rule: strict, Key: "k"}); len(d.Violations) != 1 {
		t.Errorf("the shadow reports %+v", d.Violations)
	}
	override(t, s.limiter, "strict", ratelimit.Override{Limit: 7}) // instead of the one before
	s.pass(time.Minute)
	s.admit(t, ratelimit.Request{Rule: strict, Key: "k"})
}

// No permits refuse everything, also where a call brings its limit along.
func TestOverrideToNothing(t *testing.T) {
	s := inMemory(newClock())
	rules := ratelimit.NewRules("p.T.M", ratelimit.Rule{Name: "r", Limit: 9, Per: time.Hour})
	take := func() error {
		return s.limiter.Charge(context.Background(), rules, ratelimit.Charge{Cost: 1, Limit: ratelimit.LimitOf(100)})
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	override(t, s.limiter, "r", ratelimit.Override{Limit: ratelimit.NoPermits})
	if err := take(); !errors.Is(err, ratelimit.ErrTooManyRequests) {
		t.Errorf("got error %v, want a refusal", err)
	}
	override(t, s.limiter, "r", ratelimit.Override{Limit: 1})
	if err := take(); !errors.Is(err, ratelimit.ErrTooManyRequests) {
		t.Errorf("got error %v, want a refusal after one of one permits", err)
	}
}

// An override that does not suit a rule leaves it as it is, and says so.
func TestOverrideThatDoesNotSuit(t *testing.T) {
	s := inMemory(newClock())
	daily := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Cron: "@daily"}, Key: "k"}
	bucket := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour, Algorithm: ratelimit.TokenBucket}, Key: "k"}
	override(t, s.limiter, "r", ratelimit.Override{Per: 2 * time.Hour, Burst: 2})
	if err := s.limiter.OverrideError(); err != nil {
		t.Errorf("before any call: %v", err)
	}
	s.admit(t, daily)
	s.refuse(t, daily)
	s.admit(t, bucket)
	s.admit(t, bucket)
	if err := s.limiter.OverrideError(); err == nil || !strings.Contains(err.Error(), "cron: found per as well") {
		t.Errorf("got error %v, want one about cron", err)
	}
	s.limiter.ClearOverride("r")
	if err := s.limiter.OverrideError(); err != nil {
		t.Errorf("after the override: %v", err)
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// limitOf is the limit of a rule that is full, as a limiter sees it.
func limitOf(t *testing.T, l *ratelimit.Limiter, q ratelimit.Request) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	if d.Allowed {
		return -1
	}
	return d.Violations[0].Limit
}

func fill(t *testing.T, s *subject) ratelimit.Request {
	t.Helper()
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 9, Per: time.Hour}, Key: "k"}
	s.admit(t, ratelimit.Request{Rule: q.Rule, Key: "k", Cost: 9})
	return q
}

// All that use a store follow its overrides: those that call all the time, those that begin, and those that begin again.
func TestRatesAreFollowed(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := fill(t, s)
		busy, idle := s.another(), s.another()
		for _, l := range []*ratelimit.Limiter{busy, idle} {
			if limit := limitOf(t, l, q); limit != 9 {
				t.Fatalf("limit %d before any override", limit)
			}
		}
		setRate(t, s.limiter, "r", ratelimit.Override{Limit: 5})
		if limit := limitOf(t, s.limiter, q); limit != 5 {
			t.Errorf("limit %d where it was set to 5", limit)
		}
		if limit := limitOf(t, s.another(), q); limit != 5 {
			t.Errorf("limit %d where a program starts", limit)
		}
		eventually(t, "a limiter that is called all the time follows", func() bool { return limitOf(t, busy, q) == 5 })
		time.Sleep(2 * time.Second) // what is promised
		if limit := limitOf(t, idle, q); limit != 5 {
			t.Errorf("limit %d where no call came for two seconds", limit)
		}
		if err := busy.ClearRate(context.Background(), "r"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a limiter follows the end of an override", func() bool { return limitOf(t, idle, q) == 9 })
	})
}

func TestTrySetRate(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := fill(t, s)
		ctx := context.Background()
		for i, want := range []bool{true, false} {
			if set, err := s.limiter.TrySetRate(ctx, "r", ratelimit.Override{Limit: int64(4 - i)}); set != want || err != nil {
				t.Errorf("attempt %d: got %v, error %v", i+1, set, err)
			}
			if limit := limitOf(t, s.limiter, q); limit != 4 {
				t.Errorf("limit %d, want the first one, 4", limit)
			}
		}
		setRate(t, s.limiter, "r", ratelimit.Override{Limit: 3})
		if limit := limitOf(t, s.limiter, q); limit != 3 {
			t.Errorf("limit %d, want the one that replaced it, 3", limit)
		}
		if err := s.limiter.ClearRate(ctx, "r"); err != nil {
			t.Fatal(err)
		}
		if set, err := s.limiter.TrySetRate(ctx, "r", ratelimit.Override{Limit: 2}); !set || err != nil {
			t.Errorf("after the end of the first: got %v, error %v", set, err)
		}
		if err := s.limiter.SetRate(ctx, "r", ratelimit.Override{}); err == nil {
			t.Error("an override of nothing was set")
		}
	})
}

// What a process says itself hides the store's override, and no other prefix sees either.
func TestOverrideHidesTheRate(t *testing.T) {
	store := memstore.New()
	s := &subject{limiter: ratelimit.New(store)}
	q := fill(t, s)
	setRate(t, s.limiter, "r", ratelimit.Override{Mode: ratelimit.ModeShadow})
	override(t, s.limiter, "r", ratelimit.Override{Limit: 7})
	if limit := limitOf(t, s.limiter, q); limit != 7 {
		t.Errorf("limit %d, want the process's own", limit)
	}
	s.limiter.ClearOverride("r")
	s.admit(t, q)
	other := &subject{limiter: ratelimit.New(store, ratelimit.WithPrefix("other"))}
	fill(t, other)
	other.refuse(t, q)
}

func TestMalformedRatesAreIgnored(t *testing.T) {
	server := redistest.Start(t)
	client := connect(t, server.Addr)
	s := onServer(t, server)
	q := fill(t, s)
	ctx := context.Background()
	for rule, text := range map[string]string{"r": `{"limits":1}`, "s": "5", "t": `{"limit":1}`} {
		if err := client.HSet(ctx, "ratelimit:overrides", rule, text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	l := s.another()
	if limit := limitOf(t, l, q); limit != 9 {
		t.Errorf("limit %d, want the rule's", limit)
	}
	q.Rule.Name = "t"
	if _, err := l.Allow(ctx, ratelimit.Request{Rule: q.Rule, Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if limit := limitOf(t, l, q); limit != 1 {
		t.Errorf("limit %d, want the override that is well-formed", limit)
	}
	err := l.OverrideError()
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), `"limits"`) || !strings.Contains(err.Error(), `rule "s"`) {
		t.Errorf("got error %v, want one line for each of two overrides", err)
	}
}

// While the store cannot be reached, what was known of its overrides holds.
func TestRatesOutliveAnOutage(t *testing.T) {
	server := redistest.Start(t)
	l := ratelimit.New(redisstore.New(connect(t, server.Addr)), ratelimit.WithFailurePolicy(ratelimit.Local))
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 9, Per: time.Hour}, Key: "k"}
	setRate(t, l, "r", ratelimit.Override{Limit: 1})
	server.Stop()
	if _, err := l.Allow(context.Background(), q); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the failure to follow is known", func() bool {
		if limit := limitOf(t, l, q); limit != 1 {
			t.Fatalf("limit %d while the store is down, want what it was before", limit)
		}
		_, ok := errors.AsType[*ratelimit.StoreError](l.OverrideError())
		return ok
	})
	server.Restart()
	eventually(t, "the limiter follows again", func() bool {
		_, _ = l.Peek(context.Background(), q)
		return l.OverrideError() == nil
	})
}
