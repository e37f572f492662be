package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Every method returns the error of its context when that ends, although the store and its client wait for replies far longer. If the client gives
// its connections the deadline of the context, a connection may notice the end first.
func TestMethodsKeepTheirDeadlines(t *testing.T) {
	server, limit := redistest.Start(t), int64(5)
	rule := ratelimit.Rule{Name: "r", Limit: 9, Per: time.Minute, Algorithm: ratelimit.FixedWindow}
	ask := ratelimit.Request{Rule: rule, Key: "k"}
	connect := func(contexts bool) redis.UniversalClient {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Hour, MaxRetries: -1, ContextTimeoutEnabled: contexts})
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	for name, store := range map[string]ratelimit.Store{
		"scripts":                          redisstore.New(connect(false), redisstore.WithTimeout(time.Hour)),
		"plain":                            plain.New(connect(false), plain.WithTimeout(time.Hour)),
		"scripts, deadlines of the client": redisstore.New(connect(true), redisstore.WithTimeout(time.Hour)),
		"plain, deadlines of the client":   plain.New(connect(true), plain.WithTimeout(time.Hour)),
	} {
		l := ratelimit.New(store)
		taken := func(change func(context.Context, ratelimit.Decision, *ratelimit.Charge) error) func(context.Context) error {
			return onCharges(t, l, change)
		}
		for method, call := range map[string]func(context.Context) error{
			"Ping":    l.Ping,
			"Rules":   func(ctx context.Context) error { _, err := l.Rules(ctx); return err },
			"Reset":   func(ctx context.Context) error { _, err := l.Reset(ctx, ask); return err },
			"Block":   func(ctx context.Context) error { return l.Block(ctx, time.Minute, ask) },
			"Unblock": func(ctx context.Context) error { return l.Unblock(ctx, ask) },
			"Blocked": func(ctx context.Context) error { _, err := l.Blocked(ctx); return err },
			"Set": func(ctx context.Context) error {
				return l.Overrides().Set(ctx, "r", ratelimit.Override{Limit: &limit})
			},
			"SetNew": func(ctx context.Context) error {
				_, err := l.Overrides().SetNew(ctx, "r", ratelimit.Override{Limit: &limit})
				return err
			},
			"Clear":  func(ctx context.Context) error { return l.Overrides().Clear(ctx, "r", "") },
			"List":   func(ctx context.Context) error { _, err := l.Overrides().List(ctx); return err },
			"Refund": taken(func(ctx context.Context, d ratelimit.Decision, _ *ratelimit.Charge) error { return d.Refund(ctx) }),
			"Settle": taken(func(ctx context.Context, d ratelimit.Decision, _ *ratelimit.Charge) error { return d.Settle(ctx, 3) }),
			"Settle of a charge": taken(func(ctx context.Context, _ ratelimit.Decision, c *ratelimit.Charge) error {
				return c.Settle(ctx, 3)
			}),
		} {
			if err := call(t.Context()); err != nil {
				t.Fatalf("%s of %s: %v", method, name, err)
			}
			server.Pause()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			ended := make(chan error, 1)
			go func() { ended <- call(ctx) }()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*ratelimit.StoreError)) {
					t.Errorf("%s of %s: got error %v", method, name, err)
				}
			case <-time.After(20 * time.Second):
				t.Errorf("%s of %s does not return when its context ends", method, name)
			}
			cancel()
			server.Resume()
		}
	}
}

// onCharges returns a function that changes another charge in each of its two calls.
func onCharges(t *testing.T, l *ratelimit.Limiter, change func(context.Context, ratelimit.Decision, *ratelimit.Charge) error) func(context.Context) error {
	t.Helper()
	rule := ratelimit.Rule{Name: "taken", Limit: 99, Per: time.Minute, Algorithm: ratelimit.FixedWindow, Key: "{k}"}
	var changes []func(context.Context) error
	for range 2 {
		d, err := l.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: "k"})
		if err != nil || !d.Allowed {
			t.Fatalf("got %+v, error %v", d, err)
		}
		ctx, charge := ratelimit.WithCharge(t.Context())
		rules := wrap.NewRules("m", rule).WithCost(rule.Name)
		if err := wrap.TakeCharges(ctx, rules.On(l), rules, wrap.Charge{Key: "k", Cost: 1}); err != nil {
			t.Fatal(err)
		}
		changes = append(changes, func(ctx context.Context) error { return change(ctx, d, charge) })
	}
	return func(ctx context.Context) error {
		change := changes[0]
		changes = changes[1:]
		return change(ctx)
	}
}
