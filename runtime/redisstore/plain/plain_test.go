package plain

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func TestOneRule(t *testing.T) {
	s := start(t).withoutOverrides()
	for _, rule := range []ratelimit.Rule{hourly, yearly} {
		first := s.admit(t, ask(rule, "k"))
		s.refuse(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 3})
		s.admit(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 2})
		before := s.dump(t)
		d := s.refuse(t, ask(rule, "k"))
		if len(d.Violations) != 1 || d.Violations[0].Remaining != 0 || d.Violations[0].Limit != 3 {
			t.Errorf("violations %+v", d.Violations)
		}
		if after := s.dump(t); after != before {
			t.Errorf("a refused call changed the server from %q to %q", before, after)
		}
		if end := d.At.Add(d.RetryAfter); rule.Cron == "" && (end.Sub(first.At) < time.Hour || end.Sub(first.At) > time.Hour+time.Minute) {
			t.Errorf("a window of an hour ends %v after its first call", end.Sub(first.At))
		} else if start, stop := window(d.At); rule.Cron != "" && (!end.Equal(stop) || first.At.Before(start)) {
			t.Errorf("the year ends at %v; got %v", stop, end)
		}
		s.admit(t, ask(rule, "another"))
		s.requireBounded(t)
	}
}

// window returns the start and end of the year of at.
func window(at time.Time) (start, stop time.Time) {
	start = time.Date(at.UTC().Year(), inHalfAYear, 1, 0, 0, 0, 0, time.UTC)
	if start.After(at) {
		start = start.AddDate(-1, 0, 0)
	}
	return start, start.AddDate(1, 0, 0)
}

// The delay of a refusal is exact. A window is never shorter than its rule says, and at most a millisecond longer.
func TestWindowsEnd(t *testing.T) {
	s := start(t)
	for _, rule := range []ratelimit.Rule{
		{Name: "short", Limit: 2, Per: 30 * time.Millisecond, Algorithm: ratelimit.FixedWindow},
		{Name: "second", Limit: 2, Cron: "* * * * * *"},
	} {
		var end time.Time // the end of the last window that was full
		for ends := 0; ends < 3; {
			d := s.allow(t, ask(rule, "k"))
			switch {
			case d.Allowed && d.At.Before(end):
				t.Fatalf("%s: admitted %v before the end that was told", rule.Name, end.Sub(d.At))
			case !d.Allowed && end.IsZero():
				end = d.At.Add(d.RetryAfter)
			case !d.Allowed && !d.At.Before(end):
				t.Fatalf("%s: refused %v after the end that was told", rule.Name, d.At.Sub(end))
			case d.Allowed && !end.IsZero():
				end = time.Time{}
				ends++
			}
			time.Sleep(300 * time.Microsecond)
		}
	}
}

// Random calls under several rules agree with a simple count.
func TestRandomCalls(t *testing.T) {
	s := start(t)
	weekly := hourly
	weekly.Name, weekly.Per, weekly.Limit = "weekly", 7*24*time.Hour, 40
	rules := []ratelimit.Rule{hourly, yearly, weekly}
	rules[0].Limit, rules[1].Limit = 25, 30
	used := map[ratelimit.Request]int64{}
	for range 400 {
		var call []ratelimit.Request
		fits := true
		for _, i := range rand.Perm(len(rules))[:1+rand.IntN(len(rules))] {
			q := ratelimit.Request{Rule: rules[i], Key: []string{"a", "b"}[rand.IntN(2)]}
			cost := 1 + rand.Int64N(4)
			fits = fits && used[q]+cost <= rules[i].Limit
			q.Cost = cost
			call = append(call, q)
		}
		d := s.allow(t, call...)
		if d.Allowed != fits {
			t.Fatalf("%+v: got %+v, want allowed: %v", call, d, fits)
		}
		back := rand.IntN(4) == 0
		if back {
			if err := d.Refund(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		for _, q := range call {
			cost := q.Cost
			q.Cost = 0
			if fits && !back {
				used[q] += cost
			}
			if left := s.left(t, q.Rule, q.Key); left != q.Rule.Limit-used[q] {
				t.Fatalf("%s of %s: %d left, want %d", q.Rule.Name, q.Key, left, q.Rule.Limit-used[q])
			}
		}
	}
	s.requireBounded(t)
}

// However many callers in several processes ask at the same time under several rules, exactly the limit is admitted.
func TestConcurrentCallsAdmitExactlyTheLimit(t *testing.T) {
	first := start(t)
	second := on(t, first.server, first.server.Addr)
	rule := hourly
	rule.Limit = 100
	wide, long := rule, yearly
	wide.Name, wide.Limit, long.Limit = "wide", 1000, 1000
	for name, call := range map[string][]ratelimit.Request{
		"several rules":    {ask(rule, "k"), ask(long, "k"), ask(wide, "k")},
		"several subjects": {ask(rule, "x"), ask(wide, "y")},
	} {
		var admitted atomic.Int64
		var all sync.WaitGroup
		for i := range 64 {
			s := []*site{first, second}[i%2]
			all.Go(func() {
				for range 4 {
					d, err := s.Allow(context.Background(), call...)
					if err != nil {
						t.Error(err)
					}
					if d.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		all.Wait()
		if admitted.Load() != 100 {
			t.Errorf("%s: %d of 256 calls admitted, want 100", name, admitted.Load())
		}
	}
	first.requireBounded(t)
}

// A refund of permits from a window that has ended has no effect on the next window.
func TestReturnAfterTheWindow(t *testing.T) {
	s := start(t)
	rule := hourly
	for _, reset := range []bool{false, true} {
		rule.Per = 30 * time.Millisecond
		if reset {
			rule.Per = time.Hour
		}
		first := s.admit(t, ask(rule, "k"))
		if reset {
			if _, err := s.Reset(context.Background(), ask(rule, "k")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond)
		} else {
			time.Sleep(40 * time.Millisecond)
		}
		if err := first.Refund(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.requireBounded(t)
		long := s.admit(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 2})
		if err := first.Refund(context.Background()); err != nil {
			t.Fatal(err)
		}
		if now := s.allow(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 2}); now.Allowed && now.At.Sub(long.At) < rule.Per {
			t.Errorf("4 of 3 permits in one window of %v", rule.Per)
		}
	}
}

// The same is true if another call has already opened the next window, and for a refund of a part.
func TestReturnToALaterWindow(t *testing.T) {
	s := start(t)
	for name, back := range map[string]func(ratelimit.Decision) error{
		"refund": func(d ratelimit.Decision) error { return d.Refund(t.Context()) },
		"settle": func(d ratelimit.Decision) error { return d.Settle(t.Context(), 1) },
	} {
		first := s.admit(t, ratelimit.Request{Rule: hourly, Key: "k", Cost: 2})
		if _, err := s.Reset(t.Context(), ask(hourly, "k")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // a window begins at a whole millisecond
		s.admit(t, ratelimit.Request{Rule: hourly, Key: "k", Cost: 2})
		if err := back(first); err != nil {
			t.Fatal(err)
		}
		if left := s.left(t, hourly, "k"); left != 1 {
			t.Errorf("%s: %d of 3 permits left, want 1", name, left)
		}
		s.server.Do("FLUSHALL")
	}
}

// A window begins in the millisecond in which its first call is admitted, or in an earlier one. So a refund of that call counts in the window, even
// if the server's clock reached the next millisecond meanwhile.
func TestReturnOfTheFirstCall(t *testing.T) {
	s := start(t)
	for i := range 3000 {
		key := strconv.Itoa(i)
		if err := s.admit(t, ask(hourly, key)).Refund(context.Background()); err != nil {
			t.Fatal(err)
		}
		if left := s.left(t, hourly, key); left != 3 {
			t.Fatalf("call %d: %d of 3 permits left after the only call came back", i, left)
		}
	}
}
