package behaviour_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// onEveryWindow runs a scenario for each store and each kind of window that it knows. For these kinds a changed limit applies exactly to the permits
// used so far.
func onEveryWindow(t *testing.T, scenario func(*testing.T, *subject, ratelimit.Request)) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, rule := range s.known(windows(3)...) {
			t.Run(rule.Name, func(t *testing.T) { scenario(t, s, ratelimit.Request{Rule: rule, Key: "k"}) })
		}
	})
}

// windows returns one rule of each kind of window, named after the kind.
func windows(limit int64) []ratelimit.Rule {
	return []ratelimit.Rule{
		window("sliding-window", limit, ratelimit.SlidingWindow), window("fixed-window", limit, ratelimit.FixedWindow),
		window("sliding-counter", limit, ratelimit.SlidingCounter), {Name: "calendar", Limit: limit, Cron: yearly},
	}
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
		s.limiter.Overrides().ClearLocal(name, "")
		s.refuse(t, q)
	})
}

// A factor that carries a limit across 10,000 changes nothing of how the rule counts, so usage so far still counts.
func TestFactorAcrossAmounts(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for name, test := range map[string]struct {
			limit, left int64
			factor      float64
		}{
			"times":   {limit: 8_000, factor: 2, left: 16_000 - 100},
			"amounts": {limit: 20_000, factor: 0.4, left: 8_000 - 100},
		} {
			q := ratelimit.Request{Rule: window(name, test.limit, s.window), Key: "k", Cost: 100}
			s.admit(t, q)
			override(t, s.limiter, name, ratelimit.Override{Factor: test.factor})
			if left := s.peek(t, q).Quotas[0].Remaining; left != test.left {
				t.Errorf("%s: %d permits are left; want %d", name, left, test.left)
			}
			s.limiter.Overrides().ClearLocal(name, "")
			if left := s.peek(t, q).Quotas[0].Remaining; left != test.limit-100 {
				t.Errorf("%s: %d permits are left without the override; want %d", name, left, test.limit-100)
			}
		}
	})
}

// Under a lowered limit, permits that are still in the window count, however the limit was raised and lowered before.
func TestOverrideLosesNoPermit(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: window("r", 4, s.window), Key: "k"}
		taken := s.admit(t, q)
		s.admit(t, q)
		override(t, s.limiter, "r", ratelimit.Override{Limit: new(int64(3))})
		s.admit(t, q) // the state keeps only three permits
		s.refuse(t, q)
		s.limiter.Overrides().ClearLocal("r", "")
		s.admit(t, q)
		s.requireEnd(t, s.refuse(t, q), taken.At, time.Hour)
	})
}

// onEveryChange runs a scenario for each store and each way in which the limit of a bucket changes. change sets the limit.
func onEveryChange(t *testing.T, scenario func(t *testing.T, s *subject, q *ratelimit.Request, change func(limit int64))) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for name, set := range map[string]func(*subject, *ratelimit.Request, int64){
			"override": func(s *subject, q *ratelimit.Request, limit int64) {
				override(t, s.limiter, q.Rule.Name, ratelimit.Override{Limit: &limit})
			},
			"build": func(s *subject, q *ratelimit.Request, limit int64) {
				q.Rule.Limit = limit
				s.limiter = s.another()
			},
			"call": func(_ *subject, q *ratelimit.Request, limit int64) { q.Rule.Limit = limit },
		} {
			t.Run(name, func(t *testing.T) {
				s := *s
				q := ratelimit.Request{Rule: ratelimit.Rule{Name: name, Per: time.Second, Burst: 50, Algorithm: ratelimit.TokenBucket}, Key: "k"}
				scenario(t, &s, &q, func(limit int64) { set(&s, &q, limit) })
			})
		}
	})
}

// A bucket goes on at a raised limit from the first call on, although that is refused: calls are admitted after the delay that it was told.
func TestRaisedLimitOfABucket(t *testing.T) {
	onEveryChange(t, func(t *testing.T, s *subject, q *ratelimit.Request, change func(int64)) {
		q.Rule.Per, q.Rule.Limit, q.Cost = time.Hour, 10, 50
		s.admit(t, *q)
		q.Cost = 1
		s.refuse(t, *q)
		change(7200)
		told := s.refuse(t, *q)
		if told.RetryAfter > time.Second/2 || told.RetryAfter < time.Second/4 {
			t.Fatalf("the call is told to retry after %v, want half a second", told.RetryAfter)
		}
		end, d := told.At.Add(told.RetryAfter), told
		for ; !d.Allowed; d = s.allow(t, *q) {
			if at := d.At.Add(d.RetryAfter); !at.Equal(end) {
				t.Fatalf("a permit at %v, want at %v as told before", at, end)
			}
			s.pass(max(d.RetryAfter/2, time.Millisecond))
		}
		if d.At.Before(end) {
			t.Errorf("a permit at %v, before %v", d.At, end)
		}
	})
}

// Before the first call at a lowered limit, a bucket gains no more than that limit. A peek shows so, and changes nothing.
func TestLoweredLimitOfABucket(t *testing.T) {
	onEveryChange(t, func(t *testing.T, s *subject, q *ratelimit.Request, change func(int64)) {
		q.Rule.Limit, q.Cost = 100, 50
		first := s.admit(t, *q)
		change(10)
		s.pass(time.Second / 2)
		gained := func(d ratelimit.Decision) int64 { return int64(d.At.Sub(first.At) / (time.Second / 10)) }
		for range 2 {
			q.Cost = 1
			if d := s.peek(t, *q); d.Quotas[0].Remaining != gained(d) {
				t.Errorf("a peek shows %d permits, want %d", d.Quotas[0].Remaining, gained(d))
			}
		}
		q.Cost, q.UpTo = 50, true
		if d := s.admit(t, *q); d.Taken != gained(d) {
			t.Errorf("%d permits are taken after %v, want %d", d.Taken, d.At.Sub(first.At), gained(d))
		}
	})
}

// While calls wait, a bucket does not gain at the old and the new rate together.
func TestRaisedLimitWhileCallsWait(t *testing.T) {
	onEveryChange(t, func(t *testing.T, s *subject, q *ratelimit.Request, change func(int64)) {
		q.Rule.Per, q.Rule.Limit, q.Rule.Burst = time.Hour, 2, 1
		first := s.admit(t, *q)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go s.limiter.Wait(ctx, *q)
		waits := *q // at the old limit
		redistest.Eventually(t, "a call waits", func() bool {
			d := s.peek(t, waits)
			return d.At.Add(d.RetryAfter).Equal(first.At.Add(time.Hour))
		})
		change(4)
		if d := s.refuse(t, *q); !d.At.Add(d.RetryAfter).Equal(first.At.Add(45 * time.Minute)) {
			t.Errorf("the next call is admitted after %v, want a quarter of an hour after the one that waits", d.At.Add(d.RetryAfter).Sub(first.At))
		}
	})
}

// A settlement forgets no permits that still count under the limit that is in force when it is made, or under the higher limit of another
// program.
func TestSettlementUnderAnotherLimit(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: window("r", 5, s.window), Key: "override"}
		override(t, s.limiter, "r", ratelimit.Override{Limit: new(int64(2))})
		taken := s.admit(t, q)
		s.limiter.Overrides().ClearLocal("r", "")
		for range 4 {
			s.admit(t, q)
		}
		if err := taken.Settle(context.Background(), 3); err != nil {
			t.Fatal(err)
		}
		s.refuse(t, q)

		low := q
		q.Key, low.Key, low.Rule.Limit = "builds", "builds", 2
		taken = (&subject{limiter: s.another()}).admit(t, low)
		for range 3 {
			s.admit(t, q)
		}
		if err := taken.Settle(context.Background(), 2); err != nil {
			t.Fatal(err)
		}
		s.refuse(t, q)
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
	onPlainToo(t, func(t *testing.T, s *subject) {
		rules := append(windows(1)[:3], window("token-bucket", 1, ratelimit.TokenBucket))
		for _, rule := range s.known(rules...) {
			q := ratelimit.Request{Rule: rule, Key: "k"}
			s.admit(t, q)
			override(t, s.limiter, q.Rule.Name, ratelimit.Override{Per: 2 * time.Hour})
			s.admit(t, q)
			d := s.refuse(t, q)
			if d.RetryAfter <= time.Hour || !strings.HasSuffix(d.Violations[0].Window, "2h") && rule.Algorithm != ratelimit.SlidingCounter {
				t.Errorf("%+v", d)
			}
			s.limiter.Overrides().ClearLocal(q.Rule.Name, "")
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
	onEveryWindow(t, func(t *testing.T, s *subject, q ratelimit.Request) {
		q.Cost, q.Rule.Mode = 3, ratelimit.ModeShadow
		s.admit(t, q)
		s.admit(t, q)
		override(t, s.limiter, q.Rule.Name, ratelimit.Override{Mode: new(ratelimit.ModeEnforce)})
		s.refuse(t, q)
		s.limiter.Overrides().ClearLocal(q.Rule.Name, "")
		q.Rule.Mode = ratelimit.ModeEnforce
		s.refuse(t, q)
		override(t, s.limiter, q.Rule.Name, ratelimit.Override{Mode: new(ratelimit.ModeShadow)})
		if d := s.admit(t, q); len(d.Violations) != 1 {
			t.Errorf("the shadow reports %+v", d.Violations)
		}
		override(t, s.limiter, q.Rule.Name, ratelimit.Override{Limit: new(int64(5))}) // replaces the override above
		s.refuse(t, q)
	})
}

// While a key is blocked, its calls pass if the rule becomes a shadow, and are refused if its limit is raised.
func TestOverrideOfARuleThatBlocks(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: window("strict", 1, s.window), Key: "k"}
		q.Rule.Block = 300 * time.Millisecond
		s.admit(t, q)
		refused := s.refuse(t, q)
		override(t, s.limiter, "strict", ratelimit.Override{Mode: new(ratelimit.ModeShadow)})
		if d := s.admit(t, q); len(d.Violations) != 1 {
			t.Errorf("the shadow reports %+v", d.Violations)
		}
		override(t, s.limiter, "strict", ratelimit.Override{Limit: new(int64(7))}) // replaces the override above
		if d := s.allow(t, q); d.Allowed && d.At.Before(refused.At.Add(q.Rule.Block)) {
			t.Error("the raised limit ends the block")
		}
		s.pass(q.Rule.Block)
		s.admit(t, q)
	})
}

// An override to a limit of 0 refuses every call, even one that comes with a limit.
func TestOverrideToNothing(t *testing.T) {
	onEveryWindow(t, func(t *testing.T, s *subject, q ratelimit.Request) {
		q.Rule.Limit, q.Rule.Computed = 0, true
		rules := wrap.NewRules("p.T.M", q.Rule)
		take := func() error {
			return wrap.TakeCharges(context.Background(), rules.On(s.limiter), rules, wrap.Charge{Cost: 1, Limit: 100})
		}
		if err := take(); err != nil {
			t.Fatal(err)
		}
		override(t, s.limiter, q.Rule.Name, ratelimit.Override{Limit: new(int64(0))})
		if err := take(); !errors.Is(err, ratelimit.ErrTooManyRequests) {
			t.Errorf("got error %v, want a refusal", err)
		}
		override(t, s.limiter, q.Rule.Name, ratelimit.Override{Limit: new(int64(1))})
		if err := take(); !errors.Is(err, ratelimit.ErrTooManyRequests) {
			t.Errorf("got error %v, want a refusal after one of one permits", err)
		}
	})
}

// A program knows an override that its rule cannot have as soon as it knows the override, before any call of the key, and as long as it holds.
func TestUnusableOverridesAreKnownWithoutACall(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		program, operator := s.another(), s.another()
		if err := program.Check(ratelimit.Rule{Name: "r", Key: "{k}", Limit: 1, Cron: yearly}); err != nil {
			t.Fatal(err)
		}
		require := func(settings, unusable int) {
			t.Helper()
			for program.Status().Settings != settings {
				time.Sleep(time.Millisecond)
			}
			if n := program.Status().Unusable; n != unusable {
				t.Errorf("of %d settings %d are unusable, want %d", settings, n, unusable)
			}
		}
		override := func(key string, o ratelimit.Override) {
			t.Helper()
			if o.Key = key; operator.Overrides().Set(t.Context(), "r", o) != nil {
				t.Fatal("the override cannot be set")
			}
		}
		override("ann", ratelimit.Override{Per: 2 * time.Hour})
		require(1, 1)
		override("bob", ratelimit.Override{Factor: 2})
		require(2, 1)
		override("", ratelimit.Override{Per: time.Hour})
		require(3, 2)
		for _, key := range []string{"ann", ""} {
			if err := operator.Overrides().Clear(t.Context(), "r", key); err != nil {
				t.Fatal(err)
			}
		}
		require(1, 0)
	})
}

// A rule that cannot have the values of an override stays as it is, and Err says so.
func TestOverrideThatDoesNotSuit(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		calendar := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Cron: yearly}, Key: "k"}
		override(t, s.limiter, "r", ratelimit.Override{Per: 2 * time.Hour, Burst: 2})
		if err := s.limiter.Overrides().Err(); err != nil {
			t.Errorf("before any call: %v", err)
		}
		s.admit(t, calendar)
		s.refuse(t, calendar)
		for _, rule := range s.known(window("r", 1, ratelimit.TokenBucket)) {
			bucket := ratelimit.Request{Rule: rule, Key: "k"}
			s.admit(t, bucket)
			s.admit(t, bucket)
		}
		if err := s.limiter.Overrides().Err(); err == nil || !strings.Contains(err.Error(), "per: does not apply: the rule has cron=") {
			t.Errorf("got error %v, want one about per", err)
		}
		s.limiter.Overrides().ClearLocal("r", "")
		if err := s.limiter.Overrides().Err(); err != nil {
			t.Errorf("after the override: %v", err)
		}
	})
}
