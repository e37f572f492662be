package behaviour_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func TestReturnGivesBackOneDecisionOnce(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		q := ratelimit.Request{Rule: rule, Key: "k"}
		s.admit(t, q)
		d := s.admit(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 2})
		s.refuse(t, q)
		for range 3 {
			if err := d.Refund(context.Background()); err != nil {
				t.Fatal(err)
			}
			if left := s.left(t, q); left != 2 {
				t.Fatalf("%d permits left after the return of 2", left)
			}
		}
	})
}

func TestReturnOfARefusalIsNothing(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		q := ratelimit.Request{Rule: rule, Key: "k", Cost: 3}
		s.admit(t, q)
		if err := s.refuse(t, q).Refund(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := s.peek(t, q).Refund(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.refuse(t, q)
	})
}

func TestReturnAfterResetTakesNothingOff(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, rule := range s.known(window("sliding", 2, ratelimit.SlidingWindow), window("fixed", 2, ratelimit.FixedWindow)) {
			q := ratelimit.Request{Rule: rule, Key: "k"}
			old := s.admit(t, q)
			if _, err := s.limiter.Reset(context.Background(), q); err != nil {
				t.Fatal(err)
			}
			s.pass(2 * time.Millisecond)
			s.admit(t, q)
			if err := old.Refund(context.Background()); err != nil {
				t.Fatal(err)
			}
			if left := s.left(t, q); left != 1 {
				t.Errorf("%s: %d of 2 permits left; the return was of a charge that the reset had forgotten", rule.Name, left)
			}
		}
	})
}

// The refund of a charge from before a reset gives back at most what was charged since the reset.
func TestReturnAfterResetAdmitsNoMoreThanTheLimit(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rules := slices.Collect(maps.Values(s.algorithms()))
		for _, rule := range append(rules, s.known(window("sliding-counter", 3, ratelimit.SlidingCounter))...) {
			q := ratelimit.Request{Rule: rule, Key: "k"}
			old := s.admit(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 3})
			if _, err := s.limiter.Reset(context.Background(), q); err != nil {
				t.Fatal(err)
			}
			s.pass(2 * time.Millisecond)
			s.admit(t, q)
			if err := old.Refund(context.Background()); err != nil {
				t.Fatal(err)
			}
			more := 0
			for more < 10 && s.allow(t, q).Allowed {
				more++
			}
			if more > 3 {
				t.Errorf("%s: after the return %d calls passed a limit of 3", rule.Name, more)
			}
		}
	})
}
