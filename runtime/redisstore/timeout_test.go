package redisstore

import (
	"context"
	"errors"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// slow is a hook that delays decisions.
type slow struct{ delay time.Duration }

func (slow) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s slow) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd.Name() {
		case "fcall", "evalsha", "eval":
			time.Sleep(s.delay)
		}
		return next(ctx, cmd)
	}
}

func (slow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The timeout is that of the whole decision, however many servers it asks. What the first ones took goes back.
func TestTimeoutOfManyServers(t *testing.T) {
	t.Parallel()
	const timeout = 400 * time.Millisecond
	addrs := map[string]string{}
	for _, name := range []string{"one", "two", "three"} {
		addrs[name] = redistest.Start(t).Addr
	}
	open := func(delay time.Duration) *redis.Ring {
		client := redis.NewRing(&redis.RingOptions{Addrs: addrs, NewClient: func(options *redis.Options) *redis.Client {
			server := redis.NewClient(options)
			server.AddHook(slow{delay})
			return server
		}})
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	quick := New(open(0), asking...).(*store)
	call := of(combinable[1], 9, "a", "b", "c", "d")
	redistest.Eventually(t, "all servers", func() bool { _, err := quick.Decide(t.Context(), &call); return err == nil })
	if err := quick.Adjust(t.Context(), back(&call)); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []bool{false, true} {
		call := of(combinable[1], 9, "a", "b", "c", "d")
		if refused {
			call.Claims[1].Cost = 9
			if v, err := quick.Decide(t.Context(), &engine.Call{Prefix: call.Prefix, Claims: of(combinable[1], 9, "b").Claims}); err != nil || !v.Admitted {
				t.Fatal(v, err)
			}
		}
		s := New(open(timeout*3/5), WithTimeout(timeout)).(*store)
		if v, err := s.Decide(t.Context(), &call); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("refused %t: servers that need more time than the decision has: got %+v, error %v", refused, v, err)
		}
		for _, subject := range []string{"a", "c", "d"} {
			redistest.Eventually(t, "permits of "+subject, func() bool { return rooms(t, quick, of(combinable[1], 9, subject))[0] == 9 })
		}
	}
}

// back makes an admitted call one that gives its charge back.
func back(call *engine.Call) *engine.Call {
	own := call.Clone()
	for i := range own.Claims {
		own.Claims[i].Delta = -own.Claims[i].Charged
	}
	return own
}

// The timeout is that of the whole decision, also if its server has to be asked again.
func TestTimeoutOfManyAsks(t *testing.T) {
	t.Parallel()
	const timeout = 400 * time.Millisecond
	server := redistest.Start(t)
	client := connect(t, server.Addr)
	client.AddHook(slow{timeout * 3 / 5})
	s := New(client, WithTimeout(timeout)).(*store)
	daily := &engine.Rule{Name: "daily", Tag: "cron", Kind: engine.Calendar, Schedule: schedule(t, "0 0 0 * * *")}
	call := of(daily, 9, "a")
	n, err := s.node(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the function", func() bool {
		n.noteTime(time.Now().UnixMicro())
		_, err := s.Decide(t.Context(), &call)
		return err == nil
	})
	call = of(daily, 9, "b")
	n.noteTime(time.Now().Add(-72 * time.Hour).UnixMicro()) // the window of the first try is not the present one
	if v, err := s.Decide(t.Context(), &call); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("two tries that need more time than the decision has: got %+v, error %v", v, err)
	}
}

// The last tries of a call are not joined with others, also if its windows were wrong in the tries before.
func TestLastTriesAreNotJoined(t *testing.T) {
	t.Parallel()
	client := connect(t, redistest.Start(t).Addr)
	client.AddHook(wrongWindows{})
	s := New(client, asking...).(*store)
	call := of(minute, 9, "a")
	r := request{call: &call}
	if _, wrong := errors.AsType[lua.WindowsAt](s.do(t.Context(), &r)); !wrong || !r.solo {
		t.Errorf("the windows are wrong: %t; the last try may be joined: %t", wrong, !r.solo)
	}
}

// wrongWindows replies to each decision that its windows are wrong.
type wrongWindows struct{ slow }

func (wrongWindows) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if decision, ok := cmd.(servers.Cmd); ok {
			decision.SetVal(-time.Now().UnixMicro())
			return nil
		}
		return next(ctx, cmd)
	}
}

// An error says how long a call tried only if it tried so long.
func TestErrorsOfConnections(t *testing.T) {
	ask := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 9, Per: time.Minute}}
	const late = "the server did not answer in time: see whether it runs, hangs or is slow, and check the address: "
	for _, c := range []struct {
		dial            func(context.Context) error
		timeout         time.Duration
		sentence, first string
	}{
		{func(context.Context) error { return context.DeadlineExceeded }, time.Minute, late, "the client has no connection: i/o timeout"},
		{func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 20 * time.Millisecond, late, "not sent within 20ms: i/o timeout"},
	} {
		client := redis.NewClient(&redis.Options{DialerRetries: 1, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return nil, c.dial(ctx)
		}})
		defer client.Close()
		l := ratelimit.New(New(client, WithTimeout(c.timeout)))
		for i := range 10 {
			_, err := l.Allow(context.Background(), ask)
			failed, ok := errors.AsType[*ratelimit.StoreError](err)
			if !ok || errors.Is(err, context.DeadlineExceeded) || !untaken(err) {
				t.Fatalf("got error %v", err)
			}
			text := failed.Err.Error()
			text, explained := strings.CutPrefix(text, c.sentence)
			if !explained || text != c.first && text != "not tried again so soon after: "+c.first {
				t.Errorf("call %d: got %q, want %q", i, text, c.first)
			}
		}
	}
}

// Calls after the client was closed cost what the first one costs: they add nothing to the client or the store.
func TestClosedClient(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	for name, client := range map[string]redis.UniversalClient{
		"server":  redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr}),
		"cluster": redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()}),
	} {
		s := New(client, asking...).(*store)
		call := of(minute, 1000, "a", "b", "c")
		redistest.Eventually(t, "a decision", func() bool { _, err := s.Decide(t.Context(), &call); return err == nil })
		nodes := func() map[any]any {
			all := map[any]any{}
			s.nodes.Range(func(id, n any) bool { all[id] = n; return true })
			return all
		}
		before := nodes()
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if _, err := s.Decide(t.Context(), &call); err == nil {
				t.Errorf("%s: a closed client decides", name)
			}
			time.Sleep(5 * time.Millisecond) // so that some calls try the client
		}
		if !maps.Equal(before, nodes()) {
			t.Errorf("%s: calls on a closed client change the nodes of the store", name)
		}
	}
}
