package fleet_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// broken is a hook that fails the commands that read settings, after some of them.
type broken struct{ left atomic.Int64 }

func (*broken) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*broken) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (b *broken) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "zrangebyscore" && b.left.Add(-1) < 0 {
			return errors.New("connection reset")
		}
		return next(ctx, cmds)
	}
}

// If a process needs several attempts to read all settings, it logs what is wrong with them once: that the store lost earlier ones, that some
// cannot be parsed, and that some are too many.
func TestWarningsOfSeveralAttempts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	b := new(broken)
	c.AddHook(b)
	b.left.Store(1 << 30)
	f := of(c, "p")
	var log lines
	f.LogTo(log.logger())
	set(t, f, "", override("lost", "", 3))
	server.Do("FLUSHALL")
	other, _ := client(t, server.Addr, 0)
	tool := of(other, "p")
	settings := []*fleet.Setting{override("malformed", "", 1)}
	for i := range 150 {
		settings = append(settings, override("r", strings.Repeat("k", i+1), 1))
	}
	set(t, tool, "", settings...)
	for _, name := range []string{"override:malformed", "override:" + strings.Repeat("long", 300)} {
		server.Do("HSET p.fleet:{p}:settings " + name + " x")
	}
	server.Do("ZADD p.fleet:{p}:versions 1.5 override:" + strings.Repeat("long", 300))
	for _, parts := range []int64{1, 0, 1, 0, 2, 2} {
		b.left.Store(parts)
		f.Beat()
		if read := parts == 2; read != (f.Status().Err == nil) || limit(f, "lost", "") != 3 || read != (limit(f, "r", "k") == 1) {
			t.Errorf("%d parts can be read: got %+v", parts, f.Status())
		}
	}
	for _, text := range []string{"the store lost its settings", "cannot read a setting", "cannot follow all settings"} {
		if n := strings.Count(log.String(), text); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", text, n, log.String())
		}
	}
	if s := f.Status(); len(s.Malformed) != 2 || s.Lost != 1 {
		t.Errorf("got %+v", s)
	}
	server.Do("FLUSHALL")
	b.left.Store(2)
	if err := of(other, "p").Import(t.Context(), fleet.Actor{By: "kim"}, nil); err != nil {
		t.Fatal(err)
	}
	if f.Beat(); len(f.Status().Malformed) > 0 {
		t.Errorf("the store has no such settings any more: got %+v", f.Status())
	}
}
