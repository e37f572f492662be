package ratelimit_test

import (
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// Clients learn of an unreported rule only its delay. The program's own violations and peeks have it.
func TestUnreported(t *testing.T) {
	secret := ratelimit.Rule{Name: "secret", Limit: 1, Per: time.Hour, Message: "Guess again.", Unreported: true}
	known := ratelimit.Rule{Name: "known", Limit: 1, Per: time.Minute, Message: "Slow down."}
	for name, test := range map[string]struct {
		rules   []ratelimit.Rule
		message string
		reports int
	}{
		"alone":  {[]ratelimit.Rule{secret}, "Too many requests.", 0},
		"first":  {[]ratelimit.Rule{secret, known}, "Slow down.", 1},
		"second": {[]ratelimit.Rule{known, secret}, "Slow down.", 1},
	} {
		t.Run(name, func(t *testing.T) {
			limiter, _ := limittest.New(t)
			var requests []ratelimit.Request
			for _, r := range test.rules {
				requests = append(requests, ratelimit.Request{Rule: r})
			}
			ctx, report := ratelimit.WithReport(t.Context())
			if d, err := limiter.Allow(ctx, requests...); err != nil || !d.Allowed {
				t.Fatalf("got %+v, %v", d, err)
			}
			d, err := limiter.Allow(ctx, requests...)
			if err != nil || d.Allowed || len(d.Violations) != len(test.rules) || d.RetryAfter != time.Hour {
				t.Fatalf("got %+v, %v", d, err)
			}
			for _, v := range d.Violations {
				if _, told := v.Policy(); told != (v.Rule == "known") {
					t.Errorf("the policy of %s is told: %v", v.Rule, told)
				}
			}
			if got := report.Quotas(); len(got) != test.reports {
				t.Errorf("the report has %+v", got)
			}
			peeked, err := limiter.Peek(t.Context(), requests...)
			if err != nil || len(peeked.Quotas) != len(test.rules) {
				t.Errorf("a peek has %+v, %v", peeked.Quotas, err)
			}
			for _, q := range peeked.Quotas {
				if _, told := q.Policy(); told != (q.Rule == "known") {
					t.Errorf("the policy of %s is told: %v", q.Rule, told)
				}
			}
			e := &ratelimit.TooManyRequestsError{Message: "Guess again.", RetryAfter: d.RetryAfter, Violations: d.Violations}
			if got := e.ClientMessage(); got != test.message {
				t.Errorf("clients read %q; expected %q", got, test.message)
			}
		})
	}
	own := &ratelimit.TooManyRequestsError{Message: "Own.", Violations: []ratelimit.Violation{{Rule: "far"}}}
	if got := own.ClientMessage(); got != "Own." {
		t.Errorf("got %q", got)
	}
	limiter, _ := limittest.New(t)
	_, err := limiter.Allow(t.Context(), ratelimit.Request{Rule: secret, Cost: 2})
	if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); !ok || !never.Unreported || never.Limit != 1 {
		t.Errorf("got %#v", err)
	}
}
