package behaviour_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// The examples of docs/waiting-fine-print.md for a limit that changes while nobody calls are right.
func TestLimitChangesWhileNobodyCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, after, found int64 }{
		"raised": {1, 10, 5}, "lowered": {10, 1, 5},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, s *subject) {
				q := ratelimit.Request{Rule: ratelimit.Rule{
					Name: "r", Algorithm: ratelimit.TokenBucket, Limit: test.before, Per: time.Second, Burst: 100,
				}, Key: "k", Cost: 100}
				s.admit(t, q)
				q.Rule.Limit = test.after
				time.Sleep(5 * time.Second)
				if q.Cost = test.found + 10; s.refuse(t, q).RetryAfter != 10*time.Second/time.Duration(test.after) {
					t.Errorf("got %+v", s.peek(t, q))
				}
				q.Cost = test.found
				s.admit(t, q)
				q.Cost = 10
				s.refuse(t, q)
				time.Sleep(10 * time.Second / time.Duration(test.after))
				s.admit(t, q)
			})
		})
	}
}

// The examples of that page for a limit that changes while a call waits are right.
func TestLimitChangesWhileCallsWait(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		algorithm   ratelimit.Algorithm
		limit, then int64 // per hour
		place, next time.Duration
	}{
		"bucket, raised":  {ratelimit.LeakyBucket, 2, 4, 30 * time.Minute, 45 * time.Minute},
		"bucket, lowered": {ratelimit.LeakyBucket, 2, 1, 30 * time.Minute, 90 * time.Minute},
		"window, raised":  {ratelimit.SlidingWindow, 1, 2, time.Hour, time.Hour},
		"window, lowered": {ratelimit.SlidingWindow, 2, 1, time.Hour, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, s *subject) {
				s.limiter = ratelimit.New(bare{s.store}) // whose beat does not go on for hours
				q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Algorithm: test.algorithm, Limit: test.limit, Per: time.Hour}, Key: "k"}
				first := s.admit(t, q)
				for s.peek(t, q).Allowed {
					s.admit(t, q)
				}
				var all sync.WaitGroup
				wait := func(want time.Duration) {
					rule := q
					all.Go(func() {
						if d, err := s.limiter.Wait(context.Background(), rule); err != nil || d.At.Sub(first.At) != want {
							t.Errorf("admitted after %v, want %v; error %v", d.At.Sub(first.At), want, err)
						}
					})
					synctest.Wait()
				}
				wait(test.place)
				time.Sleep(10 * time.Minute)
				q.Rule.Limit = test.then
				wait(test.next)
				all.Wait()
			})
		})
	}
}
