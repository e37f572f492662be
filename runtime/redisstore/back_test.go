package redisstore

import (
	"context"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// While a server is away, tries do not go through the client's pool, which would connect only once a second after some of them. When the server
// is back, decisions go on. The test logs how soon.
func TestServerIsBack(t *testing.T) {
	t.Parallel()
	for name, callers := range map[string]int{"idle": 1, "busy": 16} {
		server := redistest.Start(t)
		var dials atomic.Int64
		client := redis.NewClient(&redis.Options{Addr: server.Addr, DialerRetries: 1})
		defer client.Close()
		client.AddHook(dialed{&dials})
		d := new(decisions)
		client.AddHook(d)
		s := New(client, WithRefusalMemory(0)).(*store)
		ask := func() error {
			call := of(minute, 1e6, "a")
			_, err := s.Decide(context.Background(), &call)
			return err
		}
		var took []time.Duration
		for range 3 {
			redistest.Eventually(t, "a decision", func() bool { return ask() == nil })
			server.Stop()
			dials.Store(0)
			before := d.failed.Load()
			var crowd sync.WaitGroup
			away := make(chan struct{})
			for range callers {
				crowd.Go(func() {
					for ask() != nil {
						select {
						case <-away:
							return
						case <-time.After(time.Millisecond):
						}
					}
				})
			}
			redistest.Eventually(t, "tries to connect", func() bool { return dials.Load() > 20 })
			if sent := d.failed.Load() - before; sent > 5 {
				t.Errorf("%s: %d decisions were given to a client whose server was away", name, sent)
			}
			server.Restart()
			back := time.Now()
			redistest.Eventually(t, "a decision", func() bool { return ask() == nil })
			took = append(took, time.Since(back))
			close(away)
			crowd.Wait()
		}
		slices.Sort(took)
		t.Log(name, took)
	}
}

// While a server is away, nothing that runs in the background makes the client's pool connect. The pool would fail for up to a second when the server
// is back. So the first decision then succeeds.
func TestBackgroundKnocks(t *testing.T) {
	const patience = 5 * time.Second // a busy machine takes longer than the default
	for name, open := range map[string]func(redis.UniversalClient) ratelimit.Store{
		"redisstore": func(c redis.UniversalClient) ratelimit.Store {
			return New(c, WithStats(), WithRefusalMemory(0), WithTimeout(patience))
		},
		"plain": func(c redis.UniversalClient) ratelimit.Store { return plain.New(c, plain.WithTimeout(patience)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for beats
			server, d := redistest.Start(t), new(dialer)
			client := redis.NewClient(&redis.Options{Addr: server.Addr, Dialer: d.dial, DialTimeout: time.Hour, DialerRetries: 1, MaxRetries: -1})
			defer client.Close()
			s := open(client)
			ask := func(rule *engine.Rule) error {
				call := of(rule, 1e6, "a")
				call.Claims[0].Renewed = rule.Kind == engine.Concurrency
				_, err := s.Decide(context.Background(), &call)
				return err
			}
			redistest.Eventually(t, "a decision", func() bool { return ask(minute) == nil })
			if name == "redisstore" {
				running := &engine.Rule{Name: "runs", Kind: engine.Concurrency, Per: 3 * second}
				redistest.Eventually(t, "a call that runs", func() bool { return ask(running) == nil })
			}
			f := s.(interface{ Fleet(string) *fleet.Fleet }).Fleet("p")
			f.Register(fleet.Rule{Name: minute.Name})
			redistest.Eventually(t, "a beat", func() bool { return !f.Read().IsZero() })
			server.Stop()
			redistest.Eventually(t, "a failure", func() bool { return ask(minute) != nil })
			time.Sleep(100 * time.Millisecond) // what began before may still fail
			d.pooled.Store(0)
			d.knocks.Store(0)
			redistest.Eventually(t, "knocks of the background", func() bool { return d.knocks.Load() > 2 })
			if err := s.Ping(t.Context(), "p", nil); err == nil {
				t.Error("Ping succeeds although the server is away")
			}
			if n := d.pooled.Load(); n > 0 {
				t.Errorf("the pool connected %d times to a server that is away", n)
			}
			server.Restart()
			time.Sleep(2 * breaker.Pause)
			if err := ask(minute); err != nil {
				t.Errorf("the first decision after the outage failed: %v", err)
			}
			runtime.KeepAlive(f)
		})
	}
}

// Even if the pool of a client fails all calls, because others used it while the server was away, the first decision after that succeeds.
func TestPoolThatFails(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string]int{"alone": 1, "together": 20} {
		server := redistest.Start(t)
		client := redis.NewClient(&redis.Options{Addr: server.Addr, PoolSize: 1, MaxRetries: -1, DialerRetries: 1})
		defer client.Close()
		s := New(client, asking...)
		ask := func() error {
			call := of(minute, 1e6, "a")
			_, err := s.Decide(context.Background(), &call)
			return err
		}
		redistest.Eventually(t, "a decision", func() bool { return ask() == nil })
		for range 5 {
			server.Stop()
			redistest.Eventually(t, "a failure", func() bool { return ask() != nil && client.Ping(t.Context()).Err() != nil })
			server.Restart()
			time.Sleep(2 * breaker.Pause)
			var crowd sync.WaitGroup
			for range calls {
				crowd.Go(func() {
					if err := ask(); err != nil {
						t.Errorf("%s: a decision after the outage failed: %v", name, err)
					}
				})
			}
			crowd.Wait()
		}
	}
}

// dialer counts the connections of a client's pool, and those of knocks. A pool lets a connection take as long as the client's DialTimeout.
type dialer struct{ pooled, knocks atomic.Int64 }

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < time.Minute {
		d.knocks.Add(1)
	} else {
		d.pooled.Add(1)
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// dialed is a hook that counts connections.
type dialed struct{ n *atomic.Int64 }

func (d dialed) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d.n.Add(1)
		return next(ctx, network, addr)
	}
}

func (dialed) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (dialed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
