package behaviour_test

import (
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
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

// The year of an anchor counts in UTC, and Give takes no other years than a call does. Rules without Every ignore an anchor.
func TestYearsOfAnchors(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		west, east := time.FixedZone("west", -5*3600), time.FixedZone("east", 5*3600)
		for want, at := range map[string]time.Time{
			"found a time in the year 10000; expected 1 to 9999":  time.Date(9999, 12, 31, 19, 0, 0, 0, west),
			"found a time in the year 0; expected 1 to 9999":      time.Date(1, 1, 1, 4, 0, 0, 0, east),
			"found a time in the year 300000; expected 1 to 9999": time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC),
			"": time.Date(9999, 12, 31, 18, 0, 0, 0, west),
		} {
			q := ratelimit.Request{Rule: anchored, Key: want, Anchor: at}
			_, allow := s.limiter.Allow(t.Context(), q)
			_, peek := s.limiter.Peek(t.Context(), q)
			for _, err := range []error{allow, peek, s.limiter.Give(t.Context(), -1, q), s.limiter.Give(t.Context(), 1, q)} {
				if wrong, ok := errors.AsType[*ratelimit.KeyError](err); ok != (want != "") || ok && (wrong.Reason != want || !wrong.Internal) {
					t.Errorf("%v: got error %v; want %q", at, err, want)
				}
			}
			if q.Rule = window("other", 3, ratelimit.FixedWindow); s.limiter.Give(t.Context(), -1, q) != nil || s.left(t, q) != 2 {
				t.Errorf("%v: a rule without Every: %d are left", at, s.left(t, q))
			}
		}
	})
}

// Of several requests of one Peek or Give, some may have an anchor. Each looks at its own count. Those of one count look at one window: the open one, or
// else that of the anchor.
func TestRequestsOfWhichSomeHaveAnAnchor(t *testing.T) {
	onPlainToo(t, requestsOfWhichSomeHaveAnAnchor)
}

func requestsOfWhichSomeHaveAnAnchor(t *testing.T, s *subject) {
	here := anchored
	here.Name, here.Scope = "here", ratelimit.ScopeInstance
	for _, rule := range []ratelimit.Rule{anchored, here} {
		bare := ratelimit.Request{Rule: rule, Key: "ann"}
		end := s.peek(t, bare).At.Add(6 * time.Hour).Truncate(time.Millisecond)
		with, other, daily := bare, bare, bare
		with.Anchor, other.Key, daily.Rule.Name = end.AddDate(-30, 0, 0), "bob", "daily"
		opened := with
		opened.Key, opened.Anchor = "bob", end.Add(time.Hour)
		s.admit(t, opened)
		for used := range int64(3) {
			for _, c := range []struct {
				requests []ratelimit.Request
				left     []int64
			}{
				{[]ratelimit.Request{with, bare}, []int64{6 - used}},
				{[]ratelimit.Request{bare, with, bare}, []int64{6 - used}},
				{[]ratelimit.Request{other, with, daily}, []int64{5, 6 - used, 6}},
				{[]ratelimit.Request{bare, other, with}, []int64{6 - used, 5}},
			} {
				d := s.peek(t, c.requests...)
				for i, left := range c.left {
					q := d.Quotas[i]
					reset := map[string]time.Duration{"bob": 7 * time.Hour, "ann": 6 * time.Hour}[q.Key]
					if !d.Allowed || len(d.Quotas) != len(c.left) || q.Remaining != left || (q.Remaining < 6) != (q.Reset > reset-time.Hour && q.Reset <= reset) {
						t.Errorf("%s, %d used: got %+v; want %d left", rule.Name, used, d.Quotas, c.left)
					}
				}
			}
			s.admit(t, with)
		}
		if err := s.limiter.Give(t.Context(), -2, bare, with); err != nil || s.left(t, bare) != 0 {
			t.Errorf("%s: %d are left, error %v", rule.Name, s.left(t, bare), err)
		}
		if d, err := s.limiter.Peek(t.Context(), bare, with, with); err != nil || d.Allowed || !d.At.Add(d.RetryAfter).Equal(end) {
			t.Errorf("%s: got %+v, error %v; want a refusal until %v", rule.Name, d, err, end)
		}
		if _, err := s.limiter.Reset(t.Context(), bare); err != nil {
			t.Fatal(err)
		}
		if err := s.limiter.Give(t.Context(), -2, bare, with); err != nil || s.left(t, bare) != 2 {
			t.Errorf("%s: a window of the anchor: %d are left, error %v", rule.Name, s.left(t, bare), err)
		}
	}
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

// anchored is a rule of days that begin at anchors.
var anchored = ratelimit.Rule{Name: "r", Limit: 6, Every: "1d"}

// stream calls a method of one rule with cost=, at a cost and with an anchor.
func (s *subject) stream(t *testing.T, rule ratelimit.Rule, cost int64, anchor time.Time) (*ratelimit.Charge, *wrap.Taken) {
	t.Helper()
	method := wrap.NewRules("p.T.Stream", rule).WithCost()
	ctx, charge := ratelimit.WithCharge(t.Context())
	taken, err := wrap.Begin(ctx, method.On(s.limiter), method, wrap.Charge{Key: "ann", Cost: cost, Anchor: anchor})
	if err != nil {
		t.Fatal(err)
	}
	return charge, taken
}

// requireReset fails the test unless so many permits are left of anchored, in a window that ends after a time.
func (s *subject) requireReset(t *testing.T, left int64, reset time.Duration) {
	t.Helper()
	quota := s.peek(t, ratelimit.Request{Rule: anchored, Key: "ann"}).Quotas[0]
	if quota.Remaining != left || quota.Reset != reset {
		t.Errorf("got %+v; want %d left for %v", quota, left, reset)
	}
}

// The window that the first call opens is that of the later ones, whatever their anchors: with lease=, in this process alone, and while a server is away.
func TestMovedAnchorsInAnOpenWindow(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		leased, here := anchored, anchored
		leased.Name, leased.Lease = "leased", time.Minute
		here.Name, here.Scope = "here", ratelimit.ScopeInstance
		for _, rule := range s.known(anchored, leased, here) {
			s.requireOneWindow(t, rule)
		}
		if s.server != nil {
			s.server.Stop()
			s.with(ratelimit.New(s.store, ratelimit.WithFailurePolicy(ratelimit.FailLocal))).requireOneWindow(t, anchored)
		}
	})
}

// requireOneWindow fails the test unless a rule of days has one window for calls of different anchors.
func (s *subject) requireOneWindow(t *testing.T, rule ratelimit.Rule) {
	t.Helper()
	const hour = 3*time.Hour + 2*time.Minute + time.Second // of the first anchor
	first := time.Unix(0, 0).AddDate(-9, -7, 0).UTC().Truncate(24 * time.Hour).Add(hour)
	end := time.Time{}
	for n := range 2 * rule.Limit {
		d := s.allow(t, ratelimit.Request{Rule: rule, Key: "bob", Anchor: first.Add(time.Duration(n) * time.Hour)})
		if n == 0 {
			end = d.At.Add(-hour).UTC().Truncate(24 * time.Hour).Add(24*time.Hour + hour)
		}
		if d.Allowed != (n < rule.Limit) || !d.Allowed && !d.At.Add(d.RetryAfter).Equal(end) {
			t.Errorf("%s: call %d: got %+v; its window ends at %v", rule.Name, n, d, end)
		}
	}
}

// A call waits for the next window of its anchor. A later call whose anchor moved waits for the window after that, which ends by its own anchor. A place
// that is given back closes its window, so that the next one is opened by another anchor.
func TestPlacesOfMovedAnchors(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		s.limiter = ratelimit.New(bare{s.store})
		rule, start := anchored, time.Now()
		rule.Limit, rule.Wait = 1, 100*time.Hour
		after := func(hours time.Duration) ratelimit.Request {
			return ratelimit.Request{Rule: rule, Key: "ann", Anchor: start.Add(hours * time.Hour)}
		}
		s.admit(t, after(6))
		requirePlace := func(d ratelimit.Decision, hours time.Duration) {
			t.Helper()
			if got := d.At.Sub(start); got != hours*time.Hour {
				t.Errorf("the place comes after %v, want %d hours", got, hours)
			}
		}
		requirePlace(s.place(t, after(6)), 6)
		moved := s.place(t, after(16))
		if requirePlace(moved, 30); moved.Refund(t.Context()) != nil {
			t.Error("the place is not given back")
		}
		requirePlace(s.place(t, after(20)), 30)
		requirePlace(s.place(t, after(20)), 44)
		if d := s.refuse(t, after(23)); d.RetryAfter != 68*time.Hour {
			t.Errorf("refused for %v, want 68 hours", d.RetryAfter)
		}
		d, err := s.limiter.Wait(t.Context(), after(23))
		if requirePlace(d, 68); err != nil || time.Since(start) != 68*time.Hour {
			t.Errorf("Wait: got %+v, error %v", d, err)
		}
		s.stream(t, rule, 1, start.Add(9*time.Hour)) // the open window ends by the anchor of the call before
		if got := time.Since(start); got != 71*time.Hour {
			t.Errorf("wait=: the call waited until %v, want 71 hours", got)
		}
	})
}

// A call that grows adds to the window of its own anchor. It may have cost nothing before.
func TestAddsByAnAnchor(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		end := s.peek(t, ratelimit.Request{Rule: anchored, Key: "ann"}).At.Add(6 * time.Hour).Truncate(time.Millisecond)
		for _, cost := range []int64{0, 1} {
			charge, taken := s.stream(t, anchored, cost, end.AddDate(40, 0, 0))
			requireAdded(t, charge, 2)
			requireAdded(t, charge, 4-cost)
			refusal := refuseMore(t, charge, 1, "r")
			if v := refusal.Violations[0]; v.RetryAfter <= 5*time.Hour || v.RetryAfter > 6*time.Hour {
				t.Errorf("got %+v; want a window that ends in 6 hours", v)
			}
			if err := taken.Refund(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A call that goes on after the end of its window opens the next one by its own anchor, when it grows.
func TestAddAfterTheWindowOfAnAnchor(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		s.limiter = ratelimit.New(bare{s.store})
		charge, _ := s.stream(t, anchored, 2, time.Now().Add(6*time.Hour))
		s.requireReset(t, 4, 6*time.Hour)
		time.Sleep(7 * time.Hour)
		requireAdded(t, charge, 3)
		s.requireReset(t, 3, 23*time.Hour)
	})
}

// A settlement after the end of the window takes the rest from the window of the call's own anchor, and gives nothing to that window.
func TestSettleAfterTheWindowOfAnAnchor(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		s.limiter = ratelimit.New(bare{s.store})
		d := s.admit(t, ratelimit.Request{Rule: anchored, Key: "ann", Cost: 2, Anchor: time.Now().Add(6 * time.Hour)})
		less := s.admit(t, ratelimit.Request{Rule: anchored, Key: "ann", Cost: 2, Anchor: time.Now().Add(9 * time.Hour)})
		time.Sleep(7 * time.Hour)
		if err := less.Settle(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		s.requireReset(t, 6, 0)
		if err := d.Settle(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		s.requireReset(t, 3, 23*time.Hour)
	})
}

func isInternal(err error) bool {
	e, ok := errors.AsType[*ratelimit.KeyError](err)
	return ok && e.Internal
}
