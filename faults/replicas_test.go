//go:build faults

package faults

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// With min-replicas-to-write a master whose replicas are gone refuses decisions, instead of making some that a failover forgets.
func TestMinReplicas(t *testing.T) {
	master := redistest.Start(t, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "1")
	replica := master.StartReplica(t)
	limiter := ratelimit.New(redisstore.New(connect(t, master.Addr)), quiet())
	q := ratelimit.Request{Rule: sums()[0], Key: "k"}
	decide := func(want string) int {
		for n, deadline := 0, time.Now().Add(20*time.Second); time.Now().Before(deadline); n++ {
			_, err := limiter.Allow(context.Background(), q)
			if want == "" && err == nil || want != "" && err != nil && strings.Contains(err.Error(), want) {
				return n
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("no call ended with %q", want)
		return 0
	}
	decide("")
	replica.Pause()
	begun := time.Now()
	n := decide("NOREPLICAS")
	t.Logf("%d more calls were decided in the %v until the master missed its replica", n, time.Since(begun))
	replica.Resume()
	decide("")
}
