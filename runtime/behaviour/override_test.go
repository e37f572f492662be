package behaviour_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// onEveryWindow runs a scenario for each store and each kind of window. For these kinds a changed limit applies exactly to the permits used so far.
func onEveryWindow(t *testing.T, scenario func(*testing.T, *subject, ratelimit.Request)) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for name, rule := range map[string]ratelimit.Rule{
			"sliding-window":  {Per: time.Hour},
			"fixed-window":    {Per: time.Hour, Algorithm: ratelimit.FixedWindow},
			"sliding-counter": {Per: time.Hour, Algorithm: ratelimit.SlidingCounter},
			"calendar":        {Cron: yearly},
		} {
			rule.Name, rule.Limit = name, 3
			t.Run(name, func(t *testing.T) { scenario(t, s, ratelimit.Request{Rule: rule, Key: "k"}) })
		}
	})
}

func override(t *testing.T, l *ratelimit.Limiter, rule string, o ratelimit.Override) {
	t.Helper()
	if err := l.Overrides().SetLocal(rule, o); err != nil {
		t.Fatal(err)
	}
}

func setRate(t *testing.T, l *ratelimit.Limiter, rule string, o ratelimit.Override) {
	t.Helper()
	if err := l.Overrides().Set(context.Background(), rule, o); err != nil {
		t.Fatal(err)
	}
}

// Usage so far still counts after an override: a raised limit admits the difference, and a lowered one admits nothing until enough permits have
// left the window.
func TestOverrideCountsTheHistory(t *testing.T) {
	onEveryWindow(t, func(t *testing.T, s *subject, q ratelimit.Request) {
		name := q.Rule.Name
		for range 3 {
			s.admit(t, q)
		}
		s.refuse(t, q)
		override(t, s.limiter, name, ratelimit.Override{Limit: new(int64(5))})
		s.admit(t, q)
		override(t, s.limiter, name, ratelimit.Override{Limit: new(int64(2))})
		if d := s.refuse(t, q); d.Violations[0].Limit != 2 || d.Violations[0].Remaining != 0 {
			t.Errorf("violation %+v", d.Violations[0])
		}
		override(t, s.limiter, name, ratelimit.Override{Limit: new(int64(5))})
		s.admit(t, q)
		s.refuse(t, q)
		s.limiter.Overrides().ClearLocal(name)
		s.refuse(t, q)
	})
}

// Under a lowered limit, permits that are still in the window count, however the limit was raised and lowered before.
func TestOverrideLosesNoPermit(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 4, Per: time.Hour}, Key: "k"}
		taken := s.admit(t, q)
		s.admit(t, q)
		override(t, s.limiter, "r", ratelimit.Override{Limit: new(int64(3))})
		s.admit(t, q) // the state keeps only three permits
		s.refuse(t, q)
		s.limiter.Overrides().ClearLocal("r")
		s.admit(t, q)
		d := s.refuse(t, q)
		if want := taken.At.Add(time.Hour); !d.At.Add(d.RetryAfter).Equal(want) {
			t.Errorf("retry at %v, want an hour after the first permit, %v", d.At.Add(d.RetryAfter), want)
		}
	})
}

// If the limit of a bucket changes, the number of missing permits stays the same. Only the time until they are back changes.
func TestOverrideOfABucket(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 10, Per: time.Hour, Burst: 10, Algorithm: ratelimit.TokenBucket}, Key: "k", Cost: 10}
		first := s.admit(t, q)
		q.Cost = 1
		if d := s.refuse(t, q); !d.At.Add(d.RetryAfter).Equal(first.At.Add(6 * time.Minute)) {
			t.Errorf("a permit at %v, want after a tenth of the hour", d.At.Add(d.RetryAfter))
		}
		override(t, s.limiter, "r", ratelimit.Override{Limit: new(int64(20))})
		d := s.refuse(t, q)
		half := (d.At.Sub(first.At) + time.Microsecond) / 2 // the time in which twice the rate gains the same number of permits
		if !d.At.Add(d.RetryAfter).Equal(first.At.Add(3*time.Minute + half.Truncate(time.Microsecond))) {
			t.Errorf("a permit at %v, want after a twentieth of the hour", d.At.Add(d.RetryAfter))
		}
	})
}

// While two programs have different limits, each counts the calls that both have admitted, and admits up to its own limit.
func TestOverrideThatOthersDoNotKnow(t *testing.T) {
	onEveryWindow(t, func(t *testing.T, s *subject, q ratelimit.Request) {
		other := &subject{limiter: s.another()}
		override(t, other.limiter, q.Rule.Name, ratelimit.Override{Limit: new(int64(5))})
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

// With another period the count starts from zero. With the old period again, the permits that are still kept count.
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
			s.limiter.Overrides().ClearLocal(q.Rule.Name)
			if d := s.refuse(t, q); d.RetryAfter > time.Hour+time.Minute {
				t.Errorf("%+v", d)
			}
			override(t, s.limiter, q.Rule.Name, ratelimit.Override{Per: 2 * time.Hour})
			if _, err := s.limiter.Reset(context.Background(), q); err != nil {
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
	override(t, s.limiter, "shadow", ratelimit.Override{Mode: new(ratelimit.ModeEnforce)})
	s.refuse(t, ratelimit.Request{Rule: shadow, Key: "k"})
	s.refuse(t, ratelimit.Request{Rule: strict, Key: "k"})
	override(t, s.limiter, "strict", ratelimit.Override{Mode: new(ratelimit.ModeShadow)})
	if d := s.admit(t, ratelimit.Request{Rule: strict, Key: "k"}); len(d.Violations) != 1 {
		t.Errorf("the shadow reports %+v", d.Violations)
	}
	override(t, s.limiter, "strict", ratelimit.Override{Limit: new(int64(7))}) // replaces the override above
	s.pass(time.Minute)
	s.admit(t, ratelimit.Request{Rule: strict, Key: "k"})
}

// An override to a limit of 0 refuses every call, even one that comes with a limit.
func TestOverrideToNothing(t *testing.T) {
	s := inMemory(newClock())
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Name: "r", Limit: 9, Per: time.Hour})
	take := func() error {
		return wrap.TakeCharges(context.Background(), s.limiter, rules, wrap.Charge{Cost: 1, Limit: wrap.LimitOf(100)})
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	override(t, s.limiter, "r", ratelimit.Override{Limit: new(int64(0))})
	if err := take(); !errors.Is(err, ratelimit.ErrTooManyRequests) {
		t.Errorf("got error %v, want a refusal", err)
	}
	override(t, s.limiter, "r", ratelimit.Override{Limit: new(int64(1))})
	if err := take(); !errors.Is(err, ratelimit.ErrTooManyRequests) {
		t.Errorf("got error %v, want a refusal after one of one permits", err)
	}
}

// A rule that cannot have the values of an override stays as it is, and Err says so.
func TestOverrideThatDoesNotSuit(t *testing.T) {
	s := inMemory(newClock())
	daily := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Cron: "@daily"}, Key: "k"}
	bucket := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour, Algorithm: ratelimit.TokenBucket}, Key: "k"}
	override(t, s.limiter, "r", ratelimit.Override{Per: 2 * time.Hour, Burst: 2})
	if err := s.limiter.Overrides().Err(); err != nil {
		t.Errorf("before any call: %v", err)
	}
	s.admit(t, daily)
	s.refuse(t, daily)
	s.admit(t, bucket)
	s.admit(t, bucket)
	if err := s.limiter.Overrides().Err(); err == nil || !strings.Contains(err.Error(), "cron: found per as well") {
		t.Errorf("got error %v, want one about cron", err)
	}
	s.limiter.Overrides().ClearLocal("r")
	if err := s.limiter.Overrides().Err(); err != nil {
		t.Errorf("after the override: %v", err)
	}
}
