package ratelimit_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// asking is a handler of log lines that uses the limiter whose lines they are.
type asking struct {
	slog.Handler
	limiter *atomic.Pointer[ratelimit.Limiter]
	lines   *atomic.Int64
}

func (asking) Enabled(context.Context, slog.Level) bool { return true }

func (a asking) Handle(ctx context.Context, _ slog.Record) error {
	a.lines.Add(1)
	if l := a.limiter.Load(); l != nil {
		_, _ = l.Peek(ctx, ratelimit.Request{Rule: ratelimit.PerHour(1), Key: "log"})
		_ = l.Overrides().Err()
		_ = l.Overrides().SetLocal("log", ratelimit.Override{})
		l.Overrides().ClearLocal("log", "")
		_, _ = l.Overrides().List(ctx)
	}
	return nil
}

// A limiter logs with no lock held: a handler that uses the limiter does not wait for itself.
func TestLoggerThatUsesTheLimiter(t *testing.T) {
	store := limittest.NewOutage(limittest.NewClock())
	limiter, lines := new(atomic.Pointer[ratelimit.Limiter]), new(atomic.Int64)
	l := ratelimit.New(store, ratelimit.WithLogger(slog.New(asking{limiter: limiter, lines: lines})), ratelimit.WithFailurePolicy(ratelimit.FailOpen))
	limiter.Store(l)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, err := range []error{nil, errors.New("gone"), nil} {
			store.Begin(err)
			for range 3 {
				_, _ = l.Allow(t.Context(), ratelimit.Request{Rule: ratelimit.PerHour(1), Key: "k"})
			}
			_ = l.Ping(t.Context())
		}
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("a line is logged with a lock held")
	}
	if lines.Load() == 0 {
		t.Error("nothing was logged")
	}
}
