package grpclimit_test

import (
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
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
