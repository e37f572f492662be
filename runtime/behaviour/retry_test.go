package behaviour_test

import (
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
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
		if d := s.peek(t, call...); !d.Allowed && len(d.Violations) == len(call) {
			s.requireEnd(t, d, first.At.Add(90*time.Millisecond))
		}
		s.pass(100*time.Millisecond + s.longer)
		s.admit(t, call...)
	})
}
