//go:build faults

package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

const (
	nodeTimeout = "500"       // milliseconds
	dialTimeout = time.Second // and the read time-out: a process that is stopped still accepts connections
)

func startCluster(t *testing.T) (masters, replicas redistest.Cluster) {
	masters = redistest.StartCluster(t, 3, "--cluster-node-timeout", nodeTimeout)
	return masters, masters.Replicate(t, "--cluster-node-timeout", nodeTimeout)
}

func connectCluster(t *testing.T, c redistest.Cluster) *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), DialTimeout: dialTimeout, ReadTimeout: dialTimeout, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// hidden is a client of a cluster whose type does not show that.
type hidden struct{ redis.UniversalClient }

// pressMany makes calls for many keys, and so for all nodes, under a rule whose permits do not come back.
func pressMany(b *Book, limiter *ratelimit.Limiter, d time.Duration) {
	Press(d, 8, func(ctx context.Context, caller, n int) {
		b.Call(ctx, limiter.Allow, ratelimit.Request{Rule: sums()[0], Key: fmt.Sprint("key", (8*n+caller)%64)})
		time.Sleep(time.Millisecond)
	})
}

// lastFailure returns how long after a time the last call failed that was sent then, and why.
func lastFailure(b *Book, since time.Time) (time.Duration, error) {
	last, cause := since.UnixMicro(), error(nil)
	for _, e := range b.Entries() {
		if e.Outcome == Unknown && e.Received > last {
			last, cause = e.Received, e.Err
		}
	}
	return time.Duration(last-since.UnixMicro()) * time.Microsecond, cause
}

// lost returns how many permits clients were told that they took and the store has forgotten. It fails if the store counts more than
// all calls can have taken.
func lost(t *testing.T, b *Book, limiter *ratelimit.Limiter) (lost, all int64) {
	t.Helper()
	taken, unknown := map[string]int64{}, map[string]int64{}
	for _, e := range b.Entries() {
		switch e.Outcome {
		case Admitted:
			taken[e.Key] += e.Cost
		case Unknown:
			unknown[e.Key] += e.Cost
		}
	}
	for key, n := range taken {
		d, err := limiter.Peek(context.Background(), ratelimit.Request{Rule: sums()[0], Key: key})
		if err != nil {
			t.Fatal(err)
		}
		used := sums()[0].Limit - d.Quotas[0].Remaining
		if used > n+unknown[key] {
			t.Errorf("%s: %d permits are used; clients took %d, and %d they do not know", key, used, n, unknown[key])
		}
		lost, all = lost+max(0, n-used), all+n
	}
	return lost, all
}

// Decisions go on within a second after a replica was promoted, and not much later if the dead master is silent instead of gone.
func TestFailoverOfACluster(t *testing.T) {
	for name, c := range map[string]struct {
		fail  func(*redistest.Server)
		bound time.Duration
		hide  bool
	}{
		"refuses":              {(*redistest.Server).Stop, time.Second, false},
		"is silent":            {(*redistest.Server).Pause, dialTimeout + time.Second, false},
		"refuses, hidden":      {(*redistest.Server).Stop, time.Second, true},
		"is silent and hidden": {(*redistest.Server).Pause, dialTimeout + time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			masters, replicas := startCluster(t)
			var client redis.UniversalClient = connectCluster(t, masters)
			if c.hide {
				client = hidden{client}
			}
			promoted := func() { replicas[0].WaitFor("ROLE", "master") }
			failover{masters[0], promoted, c.fail, c.bound}.check(t, ratelimit.New(redisstore.New(client), quiet()))
		})
	}
}

// failover makes a master fail that has a replica.
type failover struct {
	master   *redistest.Server
	promoted func() // waits for that
	fail     func(*redistest.Server)
	bound    time.Duration // from the promotion to the last call that fails
}

// check makes calls meanwhile. Machines are busy: it fails beyond three times the bound.
func (f failover) check(t *testing.T, limiter *ratelimit.Limiter) {
	var b Book
	promoted := make(chan time.Time, 1)
	go func() {
		f.promoted()
		promoted <- time.Now()
	}()
	time.AfterFunc(time.Second, func() { f.fail(f.master) })
	begun := time.Now()
	pressMany(&b, limiter, 10*time.Second)
	at := <-promoted
	after, cause := lastFailure(&b, at)
	forgotten, all := lost(t, &b, limiter)
	t.Logf("promoted after %v; the last call failed %v later: %v; %d of %d permits are forgotten",
		at.Sub(begun)-time.Second, after, cause, forgotten, all)
	report(t, &b)
	if e := b.Entries()[0]; e.Outcome == Unknown {
		t.Errorf("the first call failed: %v", e.Err)
	}
	if after > 3*f.bound {
		t.Errorf("calls failed until %v after the promotion, want at most %v", after, f.bound)
	}
}
