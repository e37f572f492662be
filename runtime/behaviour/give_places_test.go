package behaviour_test

import (
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Give leaves the places of calls that wait for a bucket. No place is given twice, and no new place comes between two others. Permits that were taken
// beyond the places come back.
func TestGiveLeavesPlaces(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		s.limiter = ratelimit.New(bare{s.store})
		for _, rule := range []ratelimit.Rule{
			{Name: "leaky", Limit: 1, Per: 10 * time.Second, Algorithm: ratelimit.LeakyBucket},
			{Name: "thirds", Limit: 3, Per: 10 * time.Second, Algorithm: ratelimit.LeakyBucket},
			{Name: "token", Limit: 1, Per: 10 * time.Second, Burst: 3, Algorithm: ratelimit.TokenBucket},
			{Name: "prepaid", Limit: 1, Per: 10 * time.Second, Algorithm: ratelimit.LeakyBucket, Prepay: true},
			{Name: "lease", Limit: 3, Per: 10 * time.Second, Burst: 3, Algorithm: ratelimit.TokenBucket, Lease: time.Second},
		} {
			q, each, start := ratelimit.Request{Rule: rule, Key: "k"}, rule.Per/time.Duration(rule.Limit), time.Now()
			next := -max(1, rule.Burst) // place, after those that come at once
			place := func(n int) {
				t.Helper()
				for ; n > 0; n-- {
					next++
					want := time.Duration(max(0, next)) * rule.Per / time.Duration(rule.Limit)
					if at := s.place(t, q).At.Sub(start); (at - want).Abs() > 9*time.Microsecond { // places are rounded up
						t.Errorf("%s: a place at %v, want %v", rule.Name, at, want)
					}
				}
			}
			place(6)
			for range 3 {
				give(t, s, q, 100)
				give(t, s, q, 1)
				place(2)
				if !rule.Prepay { // a debt does not come back while calls wait
					before := s.peek(t, q).RetryAfter
					give(t, s, q, -3)
					give(t, s, q, 1)
					if later := s.peek(t, q).RetryAfter - before; (later - 2*each).Abs() > time.Microsecond {
						t.Errorf("%s: two more were taken than given, and the next call passes %v later", rule.Name, later)
					}
					give(t, s, q, 100)
				}
				place(1)
				time.Sleep(each / 2)
			}
		}
	})
}

// If the permits of a call come back to a bucket, and calls wait that came after it, nothing else comes back.
func TestGiveAfterARefundLeavesPlaces(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		s.limiter = ratelimit.New(bare{s.store})
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: 10 * time.Second, Burst: 3, Algorithm: ratelimit.TokenBucket}, Key: "k"}
		all := q
		all.Cost = 3
		first := s.admit(t, all)
		s.place(t, q)
		if err := first.Refund(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := s.peek(t, q)
		if before.Quotas[0].Remaining != 1 { // the place takes one permit, and one is gained until then
			t.Fatalf("%+v", before)
		}
		give(t, s, q, 100)
		if after := s.peek(t, q); after.RetryAfter != before.RetryAfter || after.Quotas[0] != before.Quotas[0] {
			t.Errorf("%+v, after the permits were given %+v", before, after)
		}
	})
}

func give(t *testing.T, s *subject, q ratelimit.Request, n int64) {
	t.Helper()
	if err := s.limiter.Give(t.Context(), n, q); err != nil {
		t.Fatal(err)
	}
}
