package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// faulty is a part of a client that panics while on is set.
type faulty struct{ on atomic.Bool }

func (f *faulty) check() {
	if f.on.Load() {
		panic("a bug of the program")
	}
}

func (f *faulty) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook panics in decisions only: go-redis itself keeps a lock if a hook panics while a connection is set up.
func (f *faulty) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd.Name() {
		case "fcall", "evalsha", "eval":
			f.check()
		}
		return next(ctx, cmd)
	}
}

func (f *faulty) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// faults add a fault to a client's options, or return a function that adds it to the client.
var faults = map[string]func(f *faulty, options *redis.Options) func(*redis.Client){
	"hook": func(f *faulty, _ *redis.Options) func(*redis.Client) {
		return func(c *redis.Client) { c.AddHook(f) }
	},
	"credentials": func(f *faulty, options *redis.Options) func(*redis.Client) {
		options.CredentialsProvider = func() (string, string) { f.check(); return "", "" }
		return nil
	},
	"dialer": func(f *faulty, options *redis.Options) func(*redis.Client) {
		options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			f.check()
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
		return nil
	},
}

// recovered calls do, as a server calls a handler.
func recovered(do func()) (panicked any) {
	defer func() { panicked = recover() }()
	do()
	return nil
}

// logger returns a logger and the text that it has written.
func logger() (*slog.Logger, func() string) {
	text := new(redistest.Log)
	return slog.New(slog.NewTextHandler(text, nil)), text.String
}

// A panic in a part of the client, which the caller recovers, holds no right to send and forgets no caller. In the background it is recovered,
// and its calls fail.
func TestPanicsOfTheClient(t *testing.T) {
	t.Parallel()
	for name, add := range faults {
		for _, inBackground := range []bool{false, true} {
			server, f := redistest.Start(t), new(faulty)
			options := &redis.Options{Addr: server.Addr, DialerRetries: 1}
			hook := add(f, options)
			client := redis.NewClient(options)
			defer client.Close()
			if hook != nil {
				hook(client)
			}
			log, text := logger()
			s := New(client, asking...).(*store)
			l := ratelimit.New(s, ratelimit.WithLogger(log))
			ctx := context.Background()
			if inBackground { // the deadline is sooner than the timeout, so a goroutine sends
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 15*time.Second)
				defer cancel()
			}
			n, _ := s.node(ctx, "")
			ask := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1000, Per: time.Hour}}
			redistest.Eventually(t, name+": the first decision", func() bool { _, err := l.Allow(ctx, ask); return err == nil })
			f.on.Store(true)
			kill(server)
			for range 2 * maxSending {
				panicked := recovered(func() {
					if _, err := l.Allow(ctx, ask); !errors.As(err, new(*ratelimit.StoreError)) {
						t.Errorf("%s: got error %v", name, err)
					} else if strings.Contains(err.Error(), "panic") && strings.Contains(err.Error(), "check the address") {
						t.Errorf("%s: of a panic the error says %v", name, err)
					}
				})
				if panicked != nil && inBackground {
					t.Errorf("%s: a goroutine passed a panic on: %v", name, panicked)
				}
			}
			f.on.Store(false)
			redistest.Eventually(t, name+": a decision after the panics", func() bool { _, err := l.Allow(ctx, ask); return err == nil })
			n.mu.Lock()
			if n.sending != 0 || len(n.waiting) != 0 {
				t.Errorf("%s: %d batches hold a right to send, %d wait", name, n.sending, len(n.waiting))
			}
			n.mu.Unlock()
			got := strings.Count(text(), `level=ERROR msg="the client`)
			if got > 1 || inBackground && got == 0 { // a beat may meet the panic as well
				t.Errorf("%s, in the background %t: %d lines at ERROR:\n%s", name, inBackground, got, text())
			}
		}
	}
}

// A panic while permits are taken ahead forgets nobody who waits for them.
func TestPanicWhileALeaseIsTaken(t *testing.T) {
	t.Parallel()
	server, f := redistest.Start(t), new(faulty)
	client := connect(t, server.Addr)
	client.AddHook(f)
	s := New(client, asking...).(*store)
	rule := &engine.Rule{Name: "r", Tag: "1h", Kind: engine.FixedWindow, Per: 3600 * second, Lease: 3600 * second}
	use := func() error {
		call := of(rule, 1e6, "a")
		_, err := s.Decide(context.Background(), &call)
		return err
	}
	for range 3 { // what was used is what a lease takes ahead
		if err := use(); err != nil {
			t.Fatal(err)
		}
	}
	call := of(rule, 1e6, "a")
	l := leaseOf(s, &call)
	l.mu.Lock()
	l.permits = 0
	l.mu.Unlock()
	f.on.Store(true)
	if recovered(func() { _ = use() }) == nil {
		t.Fatal("the panic did not reach the caller")
	}
	f.on.Store(false)
	done := make(chan error, 1)
	go func() { done <- use() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("a call waits for a caller who has gone")
	}
}

// brittle is a client that hides its type, and panics.
type brittle struct {
	redis.UniversalClient
	*faulty
}

func (b brittle) Process(ctx context.Context, cmd redis.Cmder) error {
	b.check()
	return b.UniversalClient.Process(ctx, cmd)
}

// A client that is not go-redis's own sends on a goroutine. A panic there fails the call, and the program goes on.
func TestPanicOfAHiddenClient(t *testing.T) {
	t.Parallel()
	server, f := redistest.Start(t), new(faulty)
	s := New(brittle{connect(t, server.Addr), f}, asking...)
	f.on.Store(true)
	call := of(minute, 9, "a")
	if _, err := s.Decide(context.Background(), &call); !errors.As(err, new(*backend.PanicError)) {
		t.Errorf("got error %v", err)
	}
	f.on.Store(false)
	if _, err := s.Decide(context.Background(), &call); err != nil {
		t.Error(err)
	}
}

// settingsOnly is a fault in commands that read overrides, blocks and pauses.
type settingsOnly struct{ *faulty }

func (f settingsOnly) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return next(ctx, cmd)
	}
}

func (f settingsOnly) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "mget" {
			f.check()
		}
		return next(ctx, cmds)
	}
}

// A panic while a limiter reads its settings in the background ends neither the program nor the reading, and is logged once.
func TestPanicWhileSettingsAreRead(t *testing.T) {
	t.Parallel()
	server, f := redistest.Start(t), new(faulty)
	client := connect(t, server.Addr)
	client.AddHook(settingsOnly{f})
	log, text := logger()
	l := ratelimit.New(New(client, asking...), ratelimit.WithLogger(log))
	ask := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1000, Per: time.Hour}}
	f.on.Store(true)
	redistest.Eventually(t, "the error", func() bool {
		_, _ = l.Allow(t.Context(), ask)
		return l.Overrides().Err() != nil
	})
	time.Sleep(1500 * time.Millisecond) // so that it reads again
	_, _ = l.Allow(t.Context(), ask)
	f.on.Store(false)
	redistest.Eventually(t, "settings that are read", func() bool {
		_, _ = l.Allow(t.Context(), ask)
		return l.Overrides().Err() == nil
	})
	if n := strings.Count(text(), "level=ERROR"); n != 1 {
		t.Errorf("%d lines at ERROR:\n%s", n, text())
	}
}
