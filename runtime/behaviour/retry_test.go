package behaviour_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// A retry delay is exact: at any time before its end a call is refused with the rest of the delay, and at its end the call passes.
func TestRetryDelayIsExact(t *testing.T) {
	const per = 120 * time.Millisecond
	tests := map[string]struct {
		rule  ratelimit.Rule
		costs []int64 // of calls one after the other: all but the last are admitted
	}{
		"sliding window":              {ratelimit.Rule{Limit: 1, Per: per}, []int64{1, 1}},
		"sliding window, costs":       {ratelimit.Rule{Limit: 10, Per: per}, []int64{3, 3, 4, 6}},
		"sliding window, all of it":   {ratelimit.Rule{Limit: 10, Per: per}, []int64{3, 3, 3, 10}},
		"fixed window":                {ratelimit.Rule{Limit: 2, Per: per, Algorithm: ratelimit.FixedWindow}, []int64{1, 1, 1}},
		"token bucket":                {ratelimit.Rule{Limit: 7, Per: per, Algorithm: ratelimit.TokenBucket}, []int64{3, 4, 3}},
		"token bucket, burst":         {ratelimit.Rule{Limit: 3, Per: per, Burst: 2, Algorithm: ratelimit.TokenBucket}, []int64{1, 1, 2}},
		"token bucket, uneven":        {ratelimit.Rule{Limit: 997, Per: 12 * time.Second, Burst: 5, Algorithm: ratelimit.TokenBucket}, []int64{5, 5}},
		"token bucket, a large burst": {ratelimit.Rule{Limit: 1000, Per: time.Second, Burst: 100_000, Algorithm: ratelimit.TokenBucket}, []int64{99_999, 101}},
		"token bucket, many permits":  {ratelimit.Rule{Limit: 9_999_991, Per: 3 * 24 * time.Hour, Algorithm: ratelimit.TokenBucket}, []int64{9_999_991, 3}},
		"calendar":                    {ratelimit.Rule{Limit: 2, Cron: "* * * * * *"}, []int64{2, 1}},
	}
	onPlainToo(t, func(t *testing.T, s *subject) {
		for name, test := range tests {
			if test.rule.Name = "r"; !s.knows(test.rule) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				last := len(test.costs) - 1
				for _, cost := range test.costs[:last] {
					s.admit(t, ratelimit.Request{Rule: test.rule, Key: name, Cost: cost})
					s.pass(time.Millisecond)
				}
				requireExactRetry(t, s, ratelimit.Request{Rule: test.rule, Key: name, Cost: test.costs[last]})
			})
		}
	})
}

// requireExactRetry checks the retry delay of a call. If permits come back before it makes the call (a calendar's second may end meanwhile), the
// call passes, and requireExactRetry tries again.
func requireExactRetry(t *testing.T, s *subject, q ratelimit.Request) {
	t.Helper()
	d := s.peek(t, q)
	for tries := 0; d.Allowed; tries++ {
		if tries == 100 {
			t.Fatal("the last call is never refused")
		}
		s.allow(t, q)
		d = s.peek(t, q)
	}
	end := d.At.Add(d.RetryAfter)
	for !d.Allowed {
		if left := end.Sub(d.At); left <= 0 || d.RetryAfter != left {
			t.Fatalf("at %v: retry after %v; an earlier refusal promised %v", d.At, d.RetryAfter, end)
		}
		s.near(d.RetryAfter)
		d = s.peek(t, q)
	}
	if d.At.Before(end) {
		t.Fatalf("passed %v before the end of the delay", end.Sub(d.At))
	}
}

func TestRetryDelayOfSeveralRulesIsTheLongest(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		var call []ratelimit.Request
		for _, rule := range s.known(
			ratelimit.Rule{Name: "short", Limit: 1, Per: 20 * time.Millisecond, Algorithm: s.window},
			ratelimit.Rule{Name: "long", Limit: 1, Per: 90 * time.Millisecond, Algorithm: s.window},
			ratelimit.Rule{Name: "bucket", Limit: 1, Per: 50 * time.Millisecond, Algorithm: ratelimit.TokenBucket},
		) {
			call = append(call, ratelimit.Request{Rule: rule, Key: "k"})
		}
		first := s.admit(t, call...)
		d := s.peek(t, call...)
		if !d.Allowed && len(d.Violations) == len(call) {
			s.requireEnd(t, d, first.At, 90*time.Millisecond)
		}
		s.pass(d.RetryAfter)
		s.admit(t, call...)
	})
}

// A refused call passes at the end of its delay, and not before, also under rules that count members, if the programs bring different limits: a
// member that is known now may be one too many when the other rules admit the call.
func TestRetryDelayOfMembersUnderDifferentLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		l := ratelimit.New(memstore.New(memstore.WithClock(c.now)))
		draw := func(what string, from, to int64) int64 { return rapid.Int64Range(from, to).Draw(t, what) }
		for range 60 {
			members := ratelimit.Rule{Name: "members", Limit: draw("members", 1, 4), Per: 10 * time.Second, Distinct: "{m}"}
			others := members
			others.Name, others.Limit = "others", draw("others", 1, 4)
			window := ratelimit.Rule{Name: "window", Limit: draw("limit", 1, 2), Per: 6 * time.Second}
			member := func(what string) string { return fmt.Sprint(draw(what, 1, 5)) }
			all := []ratelimit.Request{{Rule: members, Member: member("member")}, {Rule: others, Member: member("other")}, {Rule: window}}
			asked := all[draw("from", 0, 2):]
			d, err := l.Allow(context.Background(), asked...)
			if err != nil {
				t.Fatal(err)
			}
			if !d.Allowed {
				early := draw("early", 1, d.RetryAfter.Microseconds())
				c.pass(d.RetryAfter - time.Duration(early)*time.Microsecond)
				if p, err := l.Peek(context.Background(), asked...); err != nil || p.Allowed || p.RetryAfter > time.Duration(early)*time.Microsecond {
					t.Fatalf("%d us before the end of a delay of %v: %+v, error %v", early, d.RetryAfter, p, err)
				}
				c.pass(time.Duration(early) * time.Microsecond)
				if p, err := l.Peek(context.Background(), asked...); err != nil || !p.Allowed {
					t.Fatalf("after a delay of %v: %+v, error %v", d.RetryAfter, p, err)
				}
			}
			c.pass(time.Duration(draw("later", 0, 3_000_000)) * time.Microsecond)
		}
	})
}

// The case that the random test above finds passes on every store.
func TestRetryDelayOfAMemberThatWillNotBeKnown(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		members := ratelimit.Request{Rule: ratelimit.Rule{Name: "members", Limit: 3, Per: 500 * time.Millisecond, Distinct: "{m}"}, Key: "k"}
		window := ratelimit.Request{Rule: ratelimit.Rule{Name: "window", Limit: 1, Per: 350 * time.Millisecond}, Key: "k"}
		admit := func(member string, of ...ratelimit.Request) {
			of[0].Member = member
			s.admit(t, of...)
		}
		admit("a", members)
		s.pass(300 * time.Millisecond)
		admit("a", members, window)
		admit("b", members)
		admit("c", members)
		members.Rule.Limit = 1 // of another program
		members.Member = "a"
		d := s.refuse(t, members, window) // the window has a permit after 350 ms, when a is no longer known, but b and c are
		s.pass(d.RetryAfter)
		admit("a", members, window)
	})
}

// A call with UpTo takes its cost where no rule limits it, as under a rule in shadow mode with a limit of 0, which reports the call.
func TestUpToUnderAShadowOfLimit0(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		shadow := ratelimit.Rule{Name: "shadow", Per: 3000 * time.Hour, Mode: ratelimit.ModeShadow}
		limit := ratelimit.Rule{Name: "limit", Limit: 7, Per: 3000 * time.Hour}
		for name, test := range map[string]struct {
			rules []ratelimit.Rule
			taken int64
		}{
			"alone": {[]ratelimit.Rule{shadow}, 10},
			"two":   {[]ratelimit.Rule{shadow, {Name: "other", Per: time.Hour, Mode: ratelimit.ModeShadow}}, 10},
			"mixed": {[]ratelimit.Rule{shadow, limit}, 7},
		} {
			var requests []ratelimit.Request
			for _, rule := range test.rules {
				requests = append(requests, ratelimit.Request{Rule: rule, Key: name, Cost: 10, UpTo: true})
			}
			if d := s.peek(t, requests...); !d.Allowed || d.Taken != 0 {
				t.Errorf("%s: Peek says %+v", name, d)
			}
			d := s.admit(t, requests...)
			if d.Taken != test.taken || len(d.Violations) == 0 || !d.Violations[0].Never {
				t.Errorf("%s: %+v, want %d permits and a report", name, d, test.taken)
			}
			if err := d.Refund(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
