package grpclimit_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// retryOf returns the delay of the RetryInfo of a status, and whether there is one.
func retryOf(err error) (time.Duration, bool) {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}

// refusedBy returns the refusal of the second call under the rules.
func refusedBy(t *testing.T, rules ...ratelimit.Rule) error {
	t.Helper()
	limiter, _ := limittest.New(t)
	var requests []ratelimit.Request
	for _, r := range rules {
		requests = append(requests, ratelimit.Request{Rule: r})
	}
	if _, err := limiter.Allow(t.Context(), requests...); err != nil {
		t.Fatal(err)
	}
	d, err := limiter.Allow(t.Context(), requests...)
	if err != nil || d.Allowed {
		t.Fatalf("got %+v, %v; expected a refusal", d, err)
	}
	return &ratelimit.TooManyRequestsError{RetryAfter: d.RetryAfter, Never: d.Never, Violations: d.Violations}
}

// Under Concurrency nobody knows when calls end: clients come back after a second or later. A rule of limit 0 has no delay.
func TestRetryInfoOfConcurrency(t *testing.T) {
	running := ratelimit.Rule{Name: "running", Limit: 1, Algorithm: ratelimit.Concurrency}
	none := ratelimit.Rule{Name: "none", Limit: 0, Algorithm: ratelimit.Concurrency}
	for name, test := range map[string]struct {
		rules []ratelimit.Rule
		want  time.Duration
		has   bool
	}{
		"alone":                {[]ratelimit.Rule{running}, time.Second, true},
		"beside a longer one":  {[]ratelimit.Rule{running, {Name: "hourly", Limit: 1, Per: time.Hour}}, time.Hour, true},
		"beside a shorter one": {[]ratelimit.Rule{{Name: "often", Limit: 1, Per: time.Millisecond}, running}, time.Second, true},
		"never":                {[]ratelimit.Rule{none}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, has := retryOf(grpclimit.Error(refusedBy(t, test.rules...))); got != test.want || has != test.has {
				t.Errorf("got %v, %v; expected %v, %v", got, has, test.want, test.has)
			}
		})
	}
}

// An error that a program has made may have any delay and any text. The status is one that gRPC can send, with a delay.
func TestRetryInfoOfAnErrorMadeByHand(t *testing.T) {
	for _, made := range []*ratelimit.TooManyRequestsError{
		{RetryAfter: -5 * time.Second, Message: "Slow down."},
		{RetryAfter: 0, Message: "Slow \xff down."},
	} {
		for way, call := range calls {
			err := call(t, serve(t, failing{err: made}))
			if got, has := retryOf(err); status.Code(err) != codes.ResourceExhausted || got != 0 || !has {
				t.Errorf("%s: got %v, with the delay %v, %v", way, err, got, has)
			}
		}
	}
}

// Whatever refuses behind an interceptor, the delay is the real one and a random part of up to the share. Error without interceptors adds nothing.
func TestJitter(t *testing.T) {
	const draws = 40
	first := func(err error) time.Duration {
		t.Helper()
		delay, ok := retryOf(err)
		if !ok {
			t.Fatalf("no RetryInfo in %v", err)
		}
		return delay
	}
	spread := func(t *testing.T, delay time.Duration, draw func() error) {
		t.Helper()
		seen := map[time.Duration]bool{}
		for range draws {
			got := first(draw())
			if got < delay || got > delay+delay/2 {
				t.Errorf("got %v; expected %v and up to half of it", got, delay)
			}
			seen[got] = true
		}
		if len(seen) < draws/2 {
			t.Errorf("%d draws have only the values %v", draws, seen)
		}
	}
	concurrency := refusedBy(t, ratelimit.Rule{Name: "running", Limit: 1, Algorithm: ratelimit.Concurrency})
	longest := &ratelimit.TooManyRequestsError{RetryAfter: math.MaxInt64}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			half := grpclimit.WithJitter(0.5)
			returned := serve(t, failing{err: refusalOf("Slow down.")}, half)
			spread(t, 5*time.Second, func() error { return call(t, returned) })
			running := serve(t, failing{err: concurrency}, half)
			spread(t, time.Second, func() error { return call(t, running) })

			limiter, _ := limittest.New(t)
			ruled := serve(t, &far{}, half, grpclimit.WithRules(limiter, nil, []ratelimit.Rule{{Name: name, Limit: 1, Per: time.Hour}}))
			limittest.RequireAllowed(t, call(t, ruled))
			spread(t, time.Hour, func() error { return call(t, ruled) })

			if got := first(call(t, serve(t, failing{err: longest}, half))); got < math.MaxInt64 {
				t.Errorf("got %v; expected the longest delay", got)
			}
			if got := first(call(t, serve(t, failing{err: refusalOf("Slow down.")}))); got != 5*time.Second {
				t.Errorf("without the option: got %v", got)
			}
		})
	}
	t.Run("messages", func(t *testing.T) {
		limiter, _ := limittest.New(t)
		rules := []ratelimit.Rule{{Name: "messages", Limit: 1, Per: time.Hour}}
		client := serve(t, &far{}, grpclimit.WithJitter(0.5), grpclimit.WithMessageRules(limiter, nil, rules))
		limittest.RequireAllowed(t, watch(t, client))
		spread(t, time.Hour, func() error { return watch(t, client) })
	})
	if got := first(grpclimit.Error(refusalOf("Slow down."))); got != 5*time.Second {
		t.Errorf("Error: got %v", got)
	}
}

func TestJitterIsMisused(t *testing.T) {
	for _, share := range []float64{0, -0.1, 1.1, math.NaN(), math.Inf(1)} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			defer func() {
				want := fmt.Sprintf("grpclimit.WithJitter: the share is %v; expected more than 0 and at most 1", share)
				if got := recover(); got != want {
					t.Errorf("got %v; expected %q", got, want)
				}
			}()
			grpclimit.WithJitter(share)
		})
	}
}

// A status says nothing of an unreported rule but its delay.
func TestUnreported(t *testing.T) {
	secret := ratelimit.Rule{Name: "secret", Limit: 1, Per: time.Hour, Message: "Guess again.", Unreported: true}
	known := ratelimit.Rule{Name: "known", Limit: 1, Per: time.Minute, Message: "Slow down."}
	for _, test := range []struct {
		rules      []ratelimit.Rule
		message    string
		violations int
	}{
		{[]ratelimit.Rule{secret}, "Too many requests.", 0},
		{[]ratelimit.Rule{secret, known}, "Slow down.", 1},
	} {
		err := grpclimit.Error(refusedBy(t, test.rules...))
		s := status.Convert(err)
		if delay, ok := retryOf(err); !ok || delay != time.Hour || s.Message() != test.message || strings.Contains(fmt.Sprint(s.Proto()), "secret") {
			t.Errorf("got %v", s.Proto())
		}
		refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](grpclimit.FromError(err))
		if !ok || refusal.Never || refusal.RetryAfter != time.Hour || len(refusal.Violations) != test.violations || refusal.ClientMessage() != test.message {
			t.Errorf("a client has %+v", refusal)
		}
	}
	err := grpclimit.Error(&ratelimit.NeverAdmissibleError{Cost: 77, Limit: 33, Unreported: true})
	if text := fmt.Sprint(status.Convert(err).Proto()); strings.Contains(text, "77") || strings.Contains(text, "33") {
		t.Errorf("got %s", text)
	}
	if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](grpclimit.FromError(err)); !ok || !never.Unreported {
		t.Errorf("a client has %v", err)
	}
}
