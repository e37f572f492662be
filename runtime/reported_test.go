package ratelimit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// A call under a report and the same call without one get the same decision, charge and refund, and give observers the same events.
func TestReportsChangeNoDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		clock := memstore.WithClock(func() time.Time { return now })
		var told [2][]string
		limiter := func(i int) *ratelimit.Limiter {
			return ratelimit.New(memstore.New(clock), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
				for j := range e.Rules {
					e.Rules[j].Remaining = 0 // only a report sets it
				}
				told[i] = append(told[i], fmt.Sprint(e.Kind, e.Method, e.Rules, e.RetryAfter, e.Never, e.Source))
			}))
		}
		silent, reported := limiter(0), limiter(1)
		rules := []ratelimit.Rule{
			{Name: "sliding", Limit: 3, Per: time.Second, Key: "{k}"},
			{Name: "fixed", Limit: 3, Per: time.Second, Algorithm: ratelimit.FixedWindow, Block: time.Second},
			{Name: "daily", Limit: 4, Cron: "*/2 * * * * *"},
			{Name: "bucket", Limit: 5, Per: time.Second, Burst: 2, Algorithm: ratelimit.TokenBucket},
			{Name: "leaky", Limit: 5, Per: time.Second, Algorithm: ratelimit.LeakyBucket, Scope: ratelimit.ScopeInstance},
			{Name: "counter", Limit: 3, Per: time.Second, Slices: 4, Algorithm: ratelimit.SlidingCounter},
			{Name: "none", Limit: 0, Per: time.Second},
			{Name: "shadow", Limit: 1, Per: time.Second, Mode: ratelimit.ModeShadow},
			{Name: "prepaid", Limit: 5, Per: time.Second, Algorithm: ratelimit.TokenBucket, Prepay: true},
		}
		type pair struct {
			silent, reported ratelimit.Decision
			requests         int
		}
		var kept []pair
		ctx := t.Context()
		asking, _ := ratelimit.WithReport(ctx)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			requests := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ratelimit.Request {
				return ratelimit.Request{Rule: rapid.SampledFrom(rules).Draw(t, "rule"), Key: rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "key")}
			}), 1, 5).Draw(t, "requests")
			switch step := rapid.SampledFrom([]string{"allow", "allow", "allow", "take", "later", "refund", "settle"}).Draw(t, "step"); {
			case step == "allow":
				a, err := silent.Allow(ctx, requests...)
				b, wrong := reported.Allow(asking, requests...)
				isLike := a.Allowed == b.Allowed && a.RetryAfter == b.RetryAfter && a.Source == b.Source && (err == nil) == (wrong == nil)
				if !isLike || a.Allowed && !a.At.Equal(b.At) {
					t.Fatalf("without a report %+v, %v; with one %+v, %v", a, err, b, wrong)
				}
				kept = append(kept, pair{a, b, len(requests)})
			case step == "take":
				var rules []ratelimit.Rule
				var subjects []string
				for _, r := range requests {
					rules, subjects = append(rules, r.Rule), append(subjects, r.Key)
				}
				prepared := wrap.NewRules("p.T.M", rules...)
				err, wrong := wrap.Take(ctx, prepared.On(silent), prepared, subjects...), wrap.Take(asking, prepared.On(reported), prepared, subjects...)
				if (err == nil) != (wrong == nil) {
					t.Fatalf("without a report %v; with one %v", err, wrong)
				}
			case step == "later":
				now = now.Add(time.Duration(rapid.IntRange(0, 700_000).Draw(t, "us")) * time.Microsecond)
			case len(kept) > 0:
				p := rapid.SampledFrom(kept).Draw(t, "charge")
				for _, d := range []ratelimit.Decision{p.silent, p.reported} {
					if err := change(ctx, d, step, p.requests); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !slices.Equal(told[0], told[1]) {
				t.Fatalf("observers were told %q; with one %q", told[0], told[1])
			}
			for _, r := range requests {
				if r.Key == "" {
					continue
				}
				a, _ := silent.Peek(ctx, r)
				if b, _ := reported.Peek(ctx, r); a.Quotas[0] != b.Quotas[0] {
					t.Fatalf("%s for %q: without a report %+v; with one %+v", r.Rule.Name, r.Key, a.Quotas[0], b.Quotas[0])
				}
			}
		}
	})
}

// change refunds the charge of a call, or settles it at 2, 3 and so on.
func change(ctx context.Context, d ratelimit.Decision, step string, requests int) error {
	if step == "refund" {
		return d.Refund(ctx)
	}
	var costs []int64
	for i := range requests {
		costs = append(costs, int64(2+i))
	}
	return d.Settle(ctx, costs...)
}

// A refund finds a permit that a sliding window recorded later than the call: at the time of its newest permit, since the clock went back.
func TestRefundAfterTheClockWentBack(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	l := ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { return now })))
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 128, Per: time.Hour}, Key: "k"}
	for range 100 {
		allow(t, l, q)
	}
	now = now.Add(-time.Second)
	d := allow(t, l, q)
	if err := d.Refund(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Peek(t.Context(), q); err != nil || d.Quotas[0].Remaining != 28 {
		t.Errorf("got %+v, error %v; want 28 permits left", d.Quotas, err)
	}
}
