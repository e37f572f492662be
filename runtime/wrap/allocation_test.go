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
	one, both, seen := rules.On(l), two.On(l), observedRules.On(observed)
	for what, take := range map[string]func() error{
		"Take":        func() error { return wrap.Take(ctx, one, rules, "k") },
		"two rules":   func() error { return wrap.Take(ctx, both, two, "k", "k") },
		"observed":    func() error { return wrap.Take(ctx, seen, observedRules, "k") },
		"TakeCharges": func() error { return wrap.TakeCharges(ctx, one, rules, wrap.Charge{Key: "k", Cost: 1}) },
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

type handedOut struct {
	next   *plainRepo
	limits *wrap.Limits
}

// What a wrapper hands out costs one allocation, the wrapper.
func TestHandedOutWrapperAllocatesOnce(t *testing.T) {
	typ := wrap.NewType("p.T", wrap.NewRules("p.T.M", bucket), wrap.NewRules("p.T.N", bucket))
	limit := func(next *plainRepo, l *ratelimit.Limiter) *handedOut { return &handedOut{next, typ.On(l)} }
	plain, limits := &plainRepo{}, typ.On(ratelimit.New(memstore.New()))
	var last *handedOut
	if n := testing.AllocsPerRun(1000, func() { last = wrap.PointerWithLimits(plain, limits, limit) }); n != 1 || last.limits != limits {
		t.Errorf("%v allocations", n)
	}
}
