package fleet_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// lines are the lines of a log.
type lines struct{ redistest.Log }

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// handler is a log handler that calls a function for each line.
type handler struct {
	slog.Handler
	handle func()
}

func (h handler) Handle(context.Context, slog.Record) error { h.handle(); return nil }

func (h handler) Enabled(context.Context, slog.Level) bool { return true }

// A log handler may use the fleet that logs: to list its settings, or to follow them.
func TestLogHandlerMayUseTheFleet(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	lines := 0
	f.LogTo(slog.New(handler{handle: func() {
		lines++
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := f.List(ctx); err != nil {
			t.Errorf("list: %v", err)
		}
		if err := f.Follow(ctx); err != nil {
			t.Errorf("follow: %v", err)
		}
	}}))
	set(t, f, "", override("r", "", 3))
	c.HSet(t.Context(), "p.fleet:{p}:settings", "override:r", "x")
	c.ZAdd(t.Context(), "p.fleet:{p}:versions", redis.Z{Score: 1000, Member: "override:r"})
	c.Set(t.Context(), "p.fleet:{p}:version", 1000, 0)
	f.Beat()
	if lines == 0 {
		t.Errorf("a malformed setting is not logged: %+v", f.Status())
	}
}
