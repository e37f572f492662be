package behaviour_test

import (
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// While a subject is blocked or paused it has nothing left, and more is there when that ends.
func TestMoreOfBlockedAndPausedSubjects(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "held", Limit: 5, Per: time.Minute, Algorithm: ratelimit.FixedWindow}, Key: "ann"}
		for name, hold := range map[string]func(q ratelimit.Request) error{
			"blocked": func(q ratelimit.Request) error { return s.limiter.Block(t.Context(), time.Hour, q) },
			"paused":  func(q ratelimit.Request) error { return s.limiter.Pause(t.Context(), time.Hour, q) },
		} {
			q.Key = name
			s.admit(t, q)
			if err := hold(q); err != nil {
				t.Fatal(err)
			}
			left := s.peek(t, q).Quotas[0]
			if left.Remaining != 0 || left.More <= 59*time.Minute || left.More > time.Hour {
				t.Errorf("%s: %+v", name, left)
			}
			if v := s.refuse(t, q).Violations[0]; v.Remaining != 0 || v.More != v.RetryAfter {
				t.Errorf("%s: more in %v, retry after %v", name, v.More, v.RetryAfter)
			}
		}
	})
}
