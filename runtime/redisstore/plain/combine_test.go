package plain

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// restless touches a key of the next transactions before they are made, so that they fail.
type restless struct {
	client *redis.Client
	left   *atomic.Int64 // the number of transactions to make fail
}

func transactions(n int64) *atomic.Int64 {
	left := new(atomic.Int64)
	left.Store(n)
	return left
}

func (restless) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (restless) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (r restless) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "multi" && r.left.Add(-1) >= 0 {
			key := cmds[len(cmds)-2].Args()[1].(string) // the last command is EXEC
			r.client.Append(ctx, key, "")               // changes nothing, but touches it
		}
		return next(ctx, cmds)
	}
}

// If other calls are always faster, the call is refused, whatever the failure policy is: the server has not failed.
func TestContentionIsARefusal(t *testing.T) {
	s := start(t)
	s.admit(t, ask(hourly, "k"), ask(yearly, "k"))
	client := redis.NewClient(&redis.Options{Addr: s.server.Addr, ReadTimeout: patience})
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(restless{s.client, transactions(math.MaxInt64)})
	l := ratelimit.New(New(client, WithTimeout(patience)), ratelimit.WithFailurePolicy(ratelimit.FailOpen))
	d, err := l.Allow(context.Background(), ask(hourly, "k"), ask(yearly, "k"))
	if err != nil || d.Allowed || d.RetryAfter <= 0 || len(d.Violations) == 0 {
		t.Errorf("got %+v, error %v", d, err)
	}
	if left := s.left(t, yearly, "k"); left != 2 {
		t.Errorf("%d of 3 permits left, want 2", left)
	}
}

// slow makes the server stop for a second in each transaction that sets the end of a window.
type slow struct{}

func (slow) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (slow) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (slow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var slowed []redis.Cmder
		for _, cmd := range cmds {
			slowed = append(slowed, cmd)
			if cmds[0].Name() == "multi" && cmd.Name() == "set" {
				slowed = append(slowed, redis.NewCmd(ctx, "debug", "sleep", "1"))
			}
		}
		return next(ctx, slowed)
	}
}

// However long a server takes for a transaction, a window is as long as its rule says, and its permits can be given back. The window of a single
// rule is not longer by the second that the server stopped.
func TestWindowsOfASlowServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--enable-debug-command", "yes")
	s, direct := on(t, server, server.Addr), on(t, server, server.Addr)
	s.store.servers.Client.AddHook(slow{})
	daily := hourly
	daily.Name, daily.Per = "daily", 24*time.Hour
	for _, call := range [][]ratelimit.Request{{ask(hourly, "k")}, {ask(hourly, "m"), ask(daily, "m")}, {ask(daily, "n"), ask(hourly, "n")}} {
		first := s.admit(t, call...)
		for _, q := range call {
			d := direct.refuse(t, ratelimit.Request{Rule: q.Rule, Key: q.Key, Cost: 3})
			end := d.At.Add(d.RetryAfter)
			if length := end.Sub(first.At); length < q.Rule.Per || len(call) == 1 && length >= q.Rule.Per+time.Second {
				t.Errorf("%s of %s: a window of %v", q.Rule.Name, q.Key, length)
			}
		}
		if err := first.Refund(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, q := range call {
			if left := direct.left(t, q.Rule, q.Key); left != 3 {
				t.Errorf("%s of %s: %d of 3 permits left after a return", q.Rule.Name, q.Key, left)
			}
		}
	}
}

// gone fails commands while it is down: those of the test, and those that the store sends in the background.
type gone struct{ down atomic.Bool }

func (*gone) DialHook(next redis.DialHook) redis.DialHook { return next }
func (g *gone) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if g.down.Load() {
			return errors.New("the server is gone")
		}
		return next(ctx, cmd)
	}
}
func (*gone) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A refund that reached no server can be tried again.
func TestReturnAfterAnOutage(t *testing.T) {
	s := start(t)
	d := s.admit(t, ask(hourly, "k"))
	g := new(gone)
	g.down.Store(true)
	s.store.servers.Client.AddHook(g)
	if err := d.Refund(context.Background()); !errors.As(err, new(*ratelimit.StoreError)) {
		t.Errorf("got error %v", err)
	}
	g.down.Store(false)
	for range 2 {
		if err := d.Refund(context.Background()); err != nil || s.left(t, hourly, "k") != 3 {
			t.Errorf("error %v, %d of 3 permits left", err, s.left(t, hourly, "k"))
		}
	}
}
