package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
)

// gate is a hook that holds the first decision back after it was closed, until it is opened.
type gate struct {
	slow
	closed atomic.Bool
	held   chan struct{} // gets an element for each decision that is held back
	opened chan struct{}
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if _, ok := cmd.(servers.Cmd); ok && g.closed.Swap(false) {
			g.held <- struct{}{}
			<-g.opened
		}
		return next(ctx, cmd)
	}
}

// Calls with the same place go in their order. If the first call asks late and finds a pause, the others ask again before they go. So no call begins
// after Pause has returned.
func TestPauseThatAnEarlierCallFinds(t *testing.T) {
	const callers = 6
	server := redistest.Start(t)
	client := connect(t, server.Addr)
	g := &gate{held: make(chan struct{}, 1), opened: make(chan struct{})}
	client.AddHook(g)
	l, other := ratelimit.New(New(client, WithTimeout(time.Minute))), ratelimit.New(New(connect(t, server.Addr), asking...))
	q := ratelimit.Request{
		Rule: ratelimit.Rule{Name: "far", Limit: callers, Per: 2 * time.Second, Algorithm: ratelimit.FixedWindow, Pausable: true}, Key: "k",
	}
	all := q
	all.Cost = callers
	if d, err := other.Allow(t.Context(), all); err != nil || !d.Allowed {
		t.Fatalf("got %+v, %v", d, err)
	}
	var begun atomic.Int64
	var calls sync.WaitGroup
	for range callers {
		calls.Go(func() {
			if _, err := l.Wait(t.Context(), q); err != nil {
				t.Error(err)
			}
			begun.Add(1)
		})
		time.Sleep(100 * time.Millisecond) // it has its place
	}
	g.closed.Store(true)
	<-g.held
	for n := int64(-1); n != begun.Load(); time.Sleep(500 * time.Millisecond) { // those before the one that is held back begin
		n = begun.Load()
	}
	if err := other.Pause(t.Context(), time.Minute, q); err != nil {
		t.Fatal(err)
	}
	before := begun.Load()
	close(g.opened)
	time.Sleep(500 * time.Millisecond)
	if n := begun.Load(); n != before {
		t.Errorf("%d calls began in the pause", n-before)
	}
	if err := other.Resume(t.Context(), q); err != nil {
		t.Error(err)
	}
	calls.Wait()
}
