package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Calls bring the limit of a rule with Computed. A peek, which lacks it, tells what is used. An override of the limit makes it known.
func TestPeekWithoutALimit(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rules := append(windows(0), ratelimit.Rule{Name: "amounts", Per: time.Hour, Amounts: true},
			ratelimit.Rule{Name: "bucket", Per: 1000 * time.Hour, Algorithm: ratelimit.TokenBucket})
		for _, rule := range s.known(rules...) {
			rule.Computed = true
			rules, q := wrap.NewRules("p.T.M", rule), ratelimit.Request{Rule: rule, Key: "k"}
			for range 3 {
				if err := wrap.TakeCharges(t.Context(), rules.On(s.limiter), rules, wrap.Charge{Key: "k", Cost: 2, Limit: 7}); err != nil {
					t.Fatal(rule.Name, err)
				}
			}
			if err := wrap.TakeCharges(t.Context(), rules.On(s.limiter), rules, wrap.Charge{Key: "k", Cost: 2, Limit: 7}); !errors.Is(err, ratelimit.ErrTooManyRequests) {
				t.Errorf("%s: got error %v beyond the limit", rule.Name, err)
			}
			d, err := s.limiter.Peek(t.Context(), q)
			if err != nil || !d.Allowed || d.Quotas[0].Limit != 0 || d.Quotas[0].Remaining != -6 {
				t.Errorf("%s: got %+v, %v", rule.Name, d, err)
			}
			override(t, s.limiter, rule.Name, ratelimit.Override{Limit: new(int64(10))})
			if d, err = s.limiter.Peek(t.Context(), q); err != nil || d.Quotas[0].Limit != 10 || d.Quotas[0].Remaining != 4 {
				t.Errorf("%s with an override: got %+v, %v", rule.Name, d, err)
			}
			s.limiter.Overrides().ClearLocal(rule.Name, "")
			err = s.limiter.Give(t.Context(), 4, q)
			if _, refused := errors.AsType[*ratelimit.RuleError](err); refused != (rule.Name == "bucket") || err != nil && !refused {
				t.Errorf("%s: give: %v", rule.Name, err)
			} else if d, err = s.limiter.Peek(t.Context(), q); !refused && (err != nil || d.Quotas[0].Remaining != -2) {
				t.Errorf("%s after 4 came back: got %+v, %v", rule.Name, d, err)
			}
			if n, err := s.limiter.Reset(t.Context(), q); n != 1 || err != nil {
				t.Errorf("%s: reset %d, %v", rule.Name, n, err)
			}
		}
	})
}

// A request cannot say its limit beside the rule, so a rule with Computed is an error in Allow and Wait, and refuses nobody by a limit of 0.
func TestRequestsWithoutALimit(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		l, rule := s.limiter, ratelimit.Rule{Name: "r", Computed: true, Per: time.Hour, Algorithm: s.window}
		if err := l.Check(rule); err != nil {
			t.Error(err)
		}
		for what, decide := range map[string]func(context.Context, ...ratelimit.Request) (ratelimit.Decision, error){"Allow": l.Allow, "Wait": l.Wait} {
			_, err := decide(t.Context(), ratelimit.Request{Rule: rule, Key: "k"})
			if wrong, ok := errors.AsType[*ratelimit.RuleError](err); !ok || wrong.Argument != "limit" {
				t.Errorf("%s: got %v", what, err)
			}
		}
		rule.Limit = 5
		if wrong, ok := errors.AsType[*ratelimit.RuleError](l.Check(rule)); !ok || wrong.Argument != "limit" {
			t.Errorf("with a limit: got %v", wrong)
		}
	})
}

// computed is a rule whose calls bring their limits.
func computed(name string) ratelimit.Rule {
	return ratelimit.Rule{Name: name, Key: "{team}", Computed: true, Per: 3000 * time.Hour}
}

// take makes a call that brings its limit under the rule, at a cost.
func (s *subject) take(ctx context.Context, rule ratelimit.Rule, key string, limit, cost int64) error {
	rules := wrap.NewRules("p.T.M", rule)
	return wrap.TakeCharges(ctx, rules.On(s.limiter), rules, wrap.Charge{Key: key, Cost: cost, Limit: limit})
}

// A call counts as a rule that declares its limit counts: both have one count, whatever the limit is. A call whose limit crosses 10,000 starts anew.
func TestEachCallCountsAsItsLimitSays(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		limits := []int64{1, 7, 10_000, 10_001, 100_000, 100_001, 1_000_000, 1_000_000_000}
		rule := computed("plan")
		for _, limit := range limits {
			for _, next := range limits {
				key := fmt.Sprint(limit, next)
				if err := s.take(t.Context(), rule, key, limit, limit); err != nil {
					t.Errorf("%d permits at a limit of %d: %v", limit, limit, err)
				}
				if left := s.left(t, ratelimit.Request{Rule: ratelimit.Rule{Name: "plan", Key: "{team}", Limit: limit, Per: rule.Per}, Key: key}); left != 0 {
					t.Errorf("%d: the declared rule has %d left after all was taken", limit, left)
				}
				err := s.take(t.Context(), rule, key, next, 1)
				if anew := (next > 10_000) != (limit > 10_000); (err == nil) != (anew || next > limit) || err != nil && !errors.Is(err, ratelimit.ErrTooManyRequests) {
					t.Errorf("a call at a limit of %d after %d permits were taken at a limit of %d: %v", next, limit, limit, err)
				}
			}
		}
	})
}

// A program that looks at a rule with Computed sees both of its counts: what is used is the more of the two, since a call has one of them. Reset
// forgets both, and Give gives to both.
func TestBothCountsAreLookedAt(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule, key := computed("plan"), "acme"
		q := ratelimit.Request{Rule: rule, Key: key}
		used := func() int64 { return -s.peek(t, q).Quotas[0].Remaining }
		for _, test := range []struct{ limit, cost, used int64 }{{100, 5, 5}, {20_000, 3, 5}, {20_000, 4, 7}, {100, 1, 7}} {
			if err := s.take(t.Context(), rule, key, test.limit, test.cost); err != nil || used() != test.used {
				t.Errorf("after %d at a limit of %d: %d are used, want %d; error %v", test.cost, test.limit, used(), test.used, err)
			}
		}
		both := []ratelimit.Request{q, {Rule: ratelimit.Rule{Name: "other", Limit: 5, Per: time.Hour}, Key: key}, q}
		if d := s.peek(t, both...); len(d.Quotas) != 2 || d.Quotas[0].Remaining != -7 || d.Quotas[0].Limit != 0 || d.Quotas[1].Remaining != 5 {
			t.Errorf("a peek at three requests: got %+v", d.Quotas)
		}
		if keys, err := s.limiter.StateKeys(q); err != nil || len(keys) != 2 {
			t.Errorf("got the keys %v, %v", keys, err)
		}
		if err := s.limiter.Give(t.Context(), 2, q); err != nil || used() != 5 {
			t.Errorf("after 2 came back: %d are used, error %v", used(), err)
		}
		if err := s.limiter.Give(t.Context(), -4, q); err != nil || used() != 9 {
			t.Errorf("after 4 were taken: %d are used, error %v", used(), err)
		}
		if n, err := s.limiter.Reset(t.Context(), q); n != 2 || err != nil || used() != 0 {
			t.Errorf("reset %d, %v, and %d are used", n, err, used())
		}
	})
}

// An override replaces the limits of calls, and counts as its own limit says. A factor multiplies them, and changes no count.
func TestOverridesOfHighComputedLimits(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := computed("plan")
		for _, test := range []struct {
			override    ratelimit.Override
			given, want int64
		}{
			{ratelimit.Override{Limit: new(int64(500_000))}, 1_000_000, 500_000},
			{ratelimit.Override{Limit: new(int64(500_000))}, 5, 500_000},
			{ratelimit.Override{Limit: new(int64(20))}, 1_000_000, 20},
			{ratelimit.Override{Factor: 0.5}, 1_000_000, 500_000},
			{ratelimit.Override{Factor: 0.001}, 1_000_000, 1000},
			{ratelimit.Override{Factor: 5}, 10_000, 50_000},
			{ratelimit.Override{Factor: 1000}, 10_000, 100_000},
		} {
			text, _ := test.override.MarshalJSON()
			name := fmt.Sprintf("%s of %d", text, test.given)
			override(t, s.limiter, "plan", test.override)
			full, more := s.take(t.Context(), rule, "acme", test.given, test.want), s.take(t.Context(), rule, "acme", test.given, 1)
			if full != nil || !errors.Is(more, ratelimit.ErrTooManyRequests) {
				t.Errorf("%s: got %v for %d permits, and %v for one more", name, full, test.want, more)
			}
			s.limiter.Overrides().ClearLocal("plan", "")
			if counts := -s.peek(t, ratelimit.Request{Rule: rule, Key: "acme"}).Quotas[0].Remaining; counts != test.want {
				t.Errorf("%s: %d permits are counted, want %d", name, counts, test.want)
			}
			if _, err := s.limiter.Reset(t.Context(), ratelimit.Request{Rule: rule, Key: "acme"}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A pause holds a key whatever limits its calls bring.
func TestPauseOfBothCounts(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := computed("plan")
		rule.Pausable = true
		rules := wrap.NewRules("p.T.M", rule)
		for _, limit := range []int64{100, 1_000_000} {
			key := fmt.Sprint("team", limit)
			taken, err := wrap.Begin(t.Context(), rules.On(s.limiter), rules, wrap.Charge{Key: key, Cost: 1, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			taken.Pause(t.Context(), time.Hour)
			for _, other := range []int64{100, 1_000_000} {
				if err := s.take(t.Context(), rule, key, other, 1); !errors.Is(err, ratelimit.ErrTooManyRequests) {
					t.Errorf("a call at %d in the pause that one at %d began: %v", other, limit, err)
				}
			}
			q := ratelimit.Request{Rule: rule, Key: key}
			if err := s.limiter.Resume(t.Context(), q); err != nil || s.take(t.Context(), rule, key, 100, 1) != nil || s.take(t.Context(), rule, key, 1_000_000, 1) != nil {
				t.Errorf("%d: calls are refused after the end of the pause, error %v", limit, err)
			}
			if err := s.limiter.Pause(t.Context(), time.Hour, q); err != nil || s.take(t.Context(), rule, key, 100, 1) == nil || s.take(t.Context(), rule, key, 1_000_000, 1) == nil {
				t.Errorf("%d: a call is admitted in the pause, error %v", limit, err)
			}
		}
	})
}

// A peek at a rule whose calls bring their limits has one violation and one quota, whichever of the two counts is blocked, and if the key is.
func TestPeekAtABlockedCount(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := computed("plan")
		rule.Block = time.Hour
		for _, limit := range []int64{1, 10_001, 0} {
			q := ratelimit.Request{Rule: rule, Key: fmt.Sprint("team", limit)}
			if limit > 0 {
				if err := s.take(t.Context(), rule, q.Key, limit, limit); err != nil {
					t.Fatal(err)
				}
				_ = s.take(t.Context(), rule, q.Key, limit, 1) // begins the block
			} else if err := s.limiter.Block(t.Context(), time.Hour, q); err != nil {
				t.Fatal(err)
			}
			d := s.peek(t, q)
			if d.Allowed || len(d.Violations) != 1 || len(d.Quotas) != 1 || d.RetryAfter < 59*time.Minute || d.Violations[0].RetryAfter != d.RetryAfter {
				t.Errorf("a limit of %d: got %+v", limit, d)
			}
		}
	})
}

// A factor does not make a valid limit, or NoLimit, of one that no call can bring.
func TestFactorsOfWrongLimits(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rule := computed("plan")
		rule.Algorithm = s.window
		for _, factor := range []float64{0.001, 0.3, 0.5, 1, 2, 1000} {
			override(t, s.limiter, "plan", ratelimit.Override{Factor: factor})
			for _, limit := range []int64{-2, -3, math.MinInt64, 1e15 + 1, math.MaxInt64} {
				err := s.take(t.Context(), rule, "acme", limit, 1)
				if e, ok := errors.AsType[*ratelimit.KeyError](err); !ok || !e.Internal || !strings.Contains(e.Reason, fmt.Sprintf("found %d;", limit)) {
					t.Errorf("%v times %d: got %v", factor, limit, err)
				}
			}
		}
	})
}

// A peek at a rule with Computed tells no limit, and no permits used that nobody took, while block= or a setting hides the count, or if the rule is
// a bucket that stores no permits.
func TestPeekWithoutALimitAtHiddenCounts(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rules := append(windows(0), ratelimit.Rule{Name: "bucket", Algorithm: ratelimit.TokenBucket, Per: 1000 * time.Hour},
			ratelimit.Rule{Name: "warm", Algorithm: ratelimit.TokenBucket, Warmup: time.Minute, Per: 1000 * time.Hour},
			ratelimit.Rule{Name: "debt", Algorithm: ratelimit.LeakyBucket, Prepay: true, Per: 1000 * time.Hour})
		for _, rule := range rules {
			rule.Computed, rule.Block = true, time.Hour
			if !s.knows(rule) {
				continue
			}
			requireNothing := func(when, key string) {
				if q := s.peek(t, ratelimit.Request{Rule: rule, Key: key}).Quotas[0]; q.Limit != 0 || q.Remaining != 0 {
					t.Errorf("%s %s: got %+v", rule.Name, when, q)
				}
			}
			requireNothing("at rest", "new")
			if err := refusedOnce(nil, s.take(t.Context(), rule, "acme", 1, 1), s.take(t.Context(), rule, "acme", 1, 1)); err != nil {
				t.Fatal(rule.Name, err)
			}
			requireNothing("after block=", "acme")
			if err := s.limiter.Block(t.Context(), time.Hour, ratelimit.Request{Rule: rule, Key: "ann"}); err != nil {
				t.Fatal(rule.Name, err)
			}
			requireNothing("after Block", "ann")
		}
	})
}
