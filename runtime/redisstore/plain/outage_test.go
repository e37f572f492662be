package plain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
)

// A call to a silent server fails, however long the client itself would wait, and its charge is given back.
func TestSilentServer(t *testing.T) {
	s := start(t)
	s.admit(t, ask(hourly, "other"))
	s.server.Pause()
	store := New(s.client, WithTimeout(20*time.Millisecond))
	_, err := ratelimit.New(store).Allow(context.Background(), ask(hourly, "k"))
	s.server.Resume()
	if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got error %v, want a *StoreError for want of a reply", err)
	}
	s.waitLeft(t, hourly, "k", 3) // a call that nobody waited for does not stay charged
}

// If a node of a cluster or a shard of a ring cannot be reached, not every call tries it. The other servers are not affected.
func TestBreakerOfEachServer(t *testing.T) {
	t.Parallel()
	masters := redistest.StartCluster(t, 3, "--cluster-require-full-coverage", "no")
	shards := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	for name, c := range map[string]struct {
		client redis.UniversalClient
		lost   *redistest.Server
	}{
		"cluster": {redis.NewClusterClient(&redis.ClusterOptions{Addrs: masters.Addrs(), DialerRetries: 1}), masters[0]},
		"ring": {redis.NewRing(&redis.RingOptions{
			Addrs: map[string]string{"a": shards[0].Addr, "b": shards[1].Addr}, HeartbeatFrequency: time.Hour, DialerRetries: 1,
		}), shards[0]},
	} {
		t.Cleanup(func() { _ = c.client.Close() })
		l := ratelimit.New(New(c.client, WithTimeout(patience)))
		failed := map[string]bool{}
		spared := 0
		for round := range 20 {
			if round == 1 {
				c.lost.Stop()
			}
			for n := range 20 {
				q := ask(ratelimit.Rule{Name: "r", Limit: 1000, Per: time.Hour, Algorithm: ratelimit.FixedWindow}, fmt.Sprint(n))
				_, err := l.Allow(context.Background(), q)
				if failed[q.Key] = err != nil; errors.As(err, new(breaker.Unsent)) {
					spared++
				}
			}
		}
		lost := 0
		for _, is := range failed {
			if is {
				lost++
			}
		}
		if lost == 0 || lost == len(failed) || spared == 0 {
			t.Errorf("%s: the calls for %d of %d keys fail, and %d were spared", name, lost, len(failed), spared)
		}
	}
}
