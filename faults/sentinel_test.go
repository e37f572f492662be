//go:build faults

package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Decisions go on within a second after the sentinels promoted a replica.
func TestFailoverBySentinels(t *testing.T) {
	for name, c := range map[string]struct {
		fail  func(*redistest.Server)
		bound time.Duration
	}{
		"refuses":   {(*redistest.Server).Stop, time.Second},
		"is silent": {(*redistest.Server).Pause, dialTimeout + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			master, replica, sentinels, client := startSentinels(t)
			promoted := func() {
				for _, s := range sentinels {
					s.WaitFor("SENTINEL GET-MASTER-ADDR-BY-NAME limits", strings.TrimPrefix(replica.Addr, "127.0.0.1:"))
				}
			}
			failover{master, promoted, c.fail, c.bound}.check(t, ratelimit.New(redisstore.New(client), quiet()))
		})
	}
}

// Calls that run over a failover keep their permits, also those that the replica had not got yet, and their permits come back.
func TestRunningCallsOverAFailover(t *testing.T) {
	master, replica, _, client := startSentinels(t)
	limiter := ratelimit.New(redisstore.New(client), quiet())
	rule := ratelimit.Rule{Name: "over", Limit: 1000, Per: time.Hour, Algorithm: ratelimit.Concurrency}
	rules := wrap.NewRules("p.T.M", rule)
	var all []*wrap.Taken
	for range 20 {
		taken, err := wrap.Begin(t.Context(), rules.On(limiter), rules, wrap.Charge{Key: "k", Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, taken)
	}
	master.Stop()
	for _, taken := range all[:5] {
		taken.Release(t.Context())
	}
	replica.WaitFor("ROLE", "master")
	waitUntilWell(t, limiter)
	requireUsed := func(want int64) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); usedOf(t, limiter, rule, "k") != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d permits are taken; want %d", usedOf(t, limiter, rule, "k"), want)
			}
		}
	}
	requireUsed(15)
	for _, taken := range all[5:] {
		taken.Release(t.Context())
	}
	requireUsed(0)
}

// startSentinels starts three sentinels that watch a master with a replica, and returns a client of theirs.
func startSentinels(t *testing.T) (master, replica *redistest.Server, sentinels redistest.Cluster, client *redis.Client) {
	master = redistest.Start(t)
	replica = master.StartReplica(t)
	sentinels = master.StartSentinels(t, "limits", 3, 500, 1)
	client = redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "limits", SentinelAddrs: sentinels.Addrs(), DialTimeout: dialTimeout, ReadTimeout: dialTimeout, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = client.Close() })
	return master, replica, sentinels, client
}
