//go:build !race

package wrap_test

import (
	"context"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// A call from generated code to the limiter allocates nothing.
func TestTakeAllocatesNothing(t *testing.T) {
	l, rules, ctx := ratelimit.New(memstore.New()), wrap.NewRules("p.T.M", bucket), context.Background()
	two := wrap.NewRules("p.T.N", bucket, ratelimit.Rule{Name: "n", Limit: 1_000_000, Per: time.Second})
	observed := ratelimit.New(memstore.New(), ratelimit.WithObserver(func(context.Context, *ratelimit.Event) {}))
	observedRules := wrap.NewRules("p.T.M", bucket)
	for what, take := range map[string]func() error{
		"Take":        func() error { return wrap.Take(ctx, l, rules, "k") },
		"two rules":   func() error { return wrap.Take(ctx, l, two, "k", "k") },
		"observed":    func() error { return wrap.Take(ctx, observed, observedRules, "k") },
		"TakeCharges": func() error { return wrap.TakeCharges(ctx, l, rules, wrap.Charge{Key: "k", Cost: 1}) },
	} {
		if n := testing.AllocsPerRun(1000, func() {
			if err := take(); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}
