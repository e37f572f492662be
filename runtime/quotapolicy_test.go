package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Clients see the same policy whether a rule admits or refuses. They see neither its method nor the template of its key.
func TestQuotaPolicies(t *testing.T) {
	const method = "internal/sms.Sender.Send"
	for _, test := range []struct {
		rule ratelimit.Rule
		want ratelimit.QuotaPolicy
	}{
		{ratelimit.Rule{Name: "codes", Limit: 1, Per: time.Minute}, ratelimit.QuotaPolicy{Name: "codes", Quota: 1, Window: time.Minute}},
		{ratelimit.Rule{Limit: 1, Per: time.Minute}, ratelimit.QuotaPolicy{Name: "rule-1", Quota: 1, Window: time.Minute}},
		{ratelimit.Rule{Name: "internal/sms.Sender", Limit: 1, Per: time.Hour}, ratelimit.QuotaPolicy{Name: "rule-1", Quota: 1, Window: time.Hour}},
		{ratelimit.Rule{Name: "auth." + method, Limit: 1, Per: time.Hour}, ratelimit.QuotaPolicy{Name: "rule-1", Quota: 1, Window: time.Hour}},
		{ratelimit.Rule{Name: "daily", Limit: 1, Cron: "@daily"}, ratelimit.QuotaPolicy{Name: "daily", Quota: 1}},
		{ratelimit.Rule{Name: "b", Limit: 10, Per: time.Second, Burst: 5, Algorithm: ratelimit.TokenBucket},
			ratelimit.QuotaPolicy{Name: "b", Quota: 5, Window: time.Second / 2}},
		{ratelimit.Rule{Name: "l", Limit: 7, Per: 7 * time.Minute, Algorithm: ratelimit.LeakyBucket}, ratelimit.QuotaPolicy{Name: "l", Quota: 1, Window: time.Minute}},
		{ratelimit.Rule{Name: "w", Limit: 7, Per: 7 * time.Hour, Warmup: time.Second, Algorithm: ratelimit.TokenBucket},
			ratelimit.QuotaPolicy{Name: "w", Quota: 7, Window: 7 * time.Hour}},
		{ratelimit.Rule{Name: "none", Per: time.Hour}, ratelimit.QuotaPolicy{Name: "none", Window: time.Hour}},
	} {
		rules := wrap.NewRules(method, test.rule)
		limiter := ratelimit.New(memstore.New())
		ctx, report := ratelimit.WithReport(context.Background())
		var refusal *ratelimit.TooManyRequestsError
		for range 10 {
			if err := wrap.Take(ctx, rules.On(limiter), rules, "somebody"); errors.As(err, &refusal) {
				break
			}
		}
		fromReport, ok := report.Quotas()[0].Policy()
		if !ok || fromReport != test.want {
			t.Errorf("of a quota: got %+v, %v; expected %+v", fromReport, ok, test.want)
		}
		if fromRefusal, ok := refusal.Violations[0].Policy(); !ok || fromRefusal != test.want {
			t.Errorf("of a violation: got %+v, %v; expected %+v", fromRefusal, ok, test.want)
		}
		d, err := limiter.Peek(ctx, ratelimit.Request{Rule: rules.Rules()[0], Key: "somebody"})
		if fromRequest, ok := d.Quotas[0].Policy(); err != nil || !ok || fromRequest.Name != test.want.Name {
			t.Errorf("of a request: got %+v, %v, error %v; expected %+v", fromRequest, ok, err, test.want)
		}
	}
}

func TestQuotaPolicyOfShadows(t *testing.T) {
	ctx, report := ratelimit.WithReport(context.Background())
	rule := ratelimit.Rule{Name: "trial", Per: time.Minute, Mode: ratelimit.ModeShadow}
	if _, err := ratelimit.New(memstore.New()).Allow(ctx, ratelimit.Request{Rule: rule}); err != nil {
		t.Fatal(err)
	}
	if policy, ok := report.Quotas()[0].Policy(); ok {
		t.Errorf("a rule that refuses nothing has a policy for clients: %+v", policy)
	}
}
