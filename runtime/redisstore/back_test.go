package redisstore

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// While a server is away, tries do not go through the client's pool, which would connect only once a second after some of them. When the server
// is back, decisions go on. The test logs how soon.
func TestServerIsBack(t *testing.T) {
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
