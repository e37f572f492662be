package behaviour_test

import (
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Permits that are given can be taken again, but a rule never has more than its limit left. A negative number takes permits, also beyond the
// limit. Each algorithm does so.
func TestGive(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, rule := range s.known(
			window("sliding", 5, ratelimit.SlidingWindow), ratelimit.Rule{Name: "amounts", Limit: 5, Per: time.Hour, Amounts: true},
			window("fixed", 5, ratelimit.FixedWindow), ratelimit.Rule{Name: "calendar", Limit: 5, Cron: yearly},
			window("counter", 5, ratelimit.SlidingCounter),
			ratelimit.Rule{Name: "slices", Limit: 5, Per: time.Hour, Algorithm: ratelimit.SlidingCounter, Slices: 500},
			ratelimit.Rule{Name: "bucket", Limit: 5, Per: 24 * time.Hour, Algorithm: ratelimit.TokenBucket},
		) {
			q := ratelimit.Request{Rule: rule, Key: "ann"}
			for step, c := range []struct{ take, give, left int64 }{
				{5, 0, 0}, {0, 2, 2}, {1, 1, 2}, {0, 100, 5}, {0, 100, 5}, {0, -3, 2}, {0, -4, 0}, {0, 100, 5}, {5, 5, 5},
			} {
				for range c.take {
					s.admit(t, q)
				}
				if err := s.limiter.Give(t.Context(), c.give, q); err != nil {
					t.Fatalf("%s: %v", rule.Name, err)
				}
				if left := s.left(t, q); left != c.left {
					t.Fatalf("%s: step %d leaves %d, want %d", rule.Name, step, left, c.left)
				}
			}
			if err := s.limiter.Give(t.Context(), 1, ratelimit.Request{Rule: rule, Key: "a fresh key"}); err != nil {
				t.Errorf("%s: a key without a count: %v", rule.Name, err)
			}
		}
		members := ratelimit.Request{Rule: ratelimit.Rule{Name: "members", Limit: 5, Per: time.Hour, Distinct: "{m}"}, Key: "ann"}
		if err := s.limiter.Give(t.Context(), 1, members); !isRuleError(err) {
			t.Errorf("members: %v", err)
		}
		if err := s.limiter.Give(t.Context(), 1); !isRuleError(err) {
			t.Errorf("no request: %v", err)
		}
	})
}

// Rules of one name and two scopes have two counts. Each gets its own permits back.
func TestGiveToBothScopes(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		fleet := ratelimit.Request{Rule: window("r", 5, s.window), Key: "ann"}
		instance := fleet
		instance.Rule.Scope = ratelimit.ScopeInstance
		for range 4 {
			s.admit(t, fleet, instance)
		}
		if err := s.limiter.Give(t.Context(), 2, fleet, instance); err != nil {
			t.Fatal(err)
		}
		for _, q := range []ratelimit.Request{fleet, instance} {
			if left := s.left(t, q); left != 3 {
				t.Errorf("%v: %d are left, want 3", q.Rule.Scope, left)
			}
		}
	})
}

func isRuleError(err error) bool {
	_, ok := errors.AsType[*ratelimit.RuleError](err)
	return ok
}
