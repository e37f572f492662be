package behaviour_test

import (
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// An open window is found without an anchor: by Peek, Give and Reset. If none is open, all permits are left, and none can be taken without an anchor.
func TestRequestsWithoutAnAnchor(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rule := ratelimit.Rule{Name: "r", Key: "{k}", Limit: 5, Every: "1d", TZ: "Asia/Shanghai"}
		now := s.peek(t, ratelimit.Request{Rule: rule, Key: "ann"}).At
		end := now.Add(12 * time.Hour).Truncate(time.Millisecond)
		q, bare := ratelimit.Request{Rule: rule, Key: "ann", Anchor: end.AddDate(-60, 0, 0)}, ratelimit.Request{Rule: rule, Key: "ann"}
		if _, err := s.limiter.Allow(t.Context(), bare); !isInternal(err) {
			t.Errorf("a call without an anchor: %v", err)
		}
		if err := s.limiter.Give(t.Context(), -2, bare); !isRuleError(err) {
			t.Errorf("permits of no window are taken: %v", err)
		}
		if err := s.limiter.Give(t.Context(), 2, bare); err != nil {
			t.Errorf("permits are given to no window: %v", err)
		}
		for range 3 {
			s.admit(t, q)
		}
		q.Anchor = now // the open window goes on to its end
		for step, c := range []struct{ give, left int64 }{{0, 2}, {1, 3}, {-2, 1}, {-1, 0}} {
			if err := s.limiter.Give(t.Context(), c.give, bare); err != nil {
				t.Fatal(err)
			}
			quota := s.peek(t, bare).Quotas[0]
			if got := s.left(t, bare); got != c.left || quota.Remaining != c.left || quota.Reset <= 0 || quota.Reset > 12*time.Hour {
				t.Errorf("step %d: %d are left, %+v; want %d, and at most half a day", step, got, quota, c.left)
			}
		}
		if d := s.refuse(t, q); !d.At.Add(d.RetryAfter).Equal(end) {
			t.Errorf("the window ends at %v, want %v", d.At.Add(d.RetryAfter), end)
		}
		if n, err := s.limiter.Reset(t.Context(), bare); n != 1 || err != nil {
			t.Errorf("%d counts are reset, error %v", n, err)
		}
		d := s.admit(t, q) // opens a window by the new anchor
		if s.peek(t, bare).Quotas[0].Reset <= 12*time.Hour {
			t.Error("the next window does not begin at the new anchor")
		}
		if err := d.Refund(t.Context()); err != nil || s.left(t, bare) != 5 {
			t.Errorf("%d are left after a refund, error %v", s.left(t, bare), err)
		}
	})
}

// Members are counted in the window that is open, whatever anchors come.
func TestMembersOfAnAnchor(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := ratelimit.Rule{Name: "r", Limit: 2, Every: "1mo", Distinct: "{m}"}
		now := s.peek(t, ratelimit.Request{Rule: rule, Key: "ann", Member: "x"}).At
		for i, member := range []string{"x", "y", "x", "y"} {
			s.admit(t, ratelimit.Request{Rule: rule, Key: "ann", Member: member, Anchor: now.Add(time.Duration(i) * time.Hour)})
		}
		d := s.refuse(t, ratelimit.Request{Rule: rule, Key: "ann", Member: "z", Anchor: now.Add(-9 * time.Hour)})
		if end := d.At.Add(d.RetryAfter); end.Before(now.AddDate(0, 0, 28).Add(-time.Second)) || end.After(now.AddDate(0, 1, 1)) {
			t.Errorf("the window ends at %v, opened at %v", end, now)
		}
	})
}

func isInternal(err error) bool {
	e, ok := errors.AsType[*ratelimit.KeyError](err)
	return ok && e.Internal
}
