//go:build faults

package faults

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// migrate moves the slot of a hash tag from one master to another, key by key and slowly, as redis-cli --cluster reshard does.
func migrate(masters redistest.Cluster, from, to *redistest.Server, tag string) {
	slot := from.Do("CLUSTER KEYSLOT " + tag)
	to.Do("CLUSTER SETSLOT " + slot + " IMPORTING " + from.Do("CLUSTER MYID"))
	from.Do("CLUSTER SETSLOT " + slot + " MIGRATING " + to.Do("CLUSTER MYID"))
	for {
		key, _, _ := strings.Cut(from.Do("CLUSTER GETKEYSINSLOT "+slot+" 1"), "\n")
		if key == "" {
			break
		}
		from.Do("MIGRATE " + strings.Replace(to.Addr, ":", " ", 1) + " " + key + " 0 1000")
		time.Sleep(10 * time.Millisecond)
	}
	for _, m := range append(redistest.Cluster{to, from}, masters...) {
		m.Do("CLUSTER SETSLOT " + slot + " NODE " + to.Do("CLUSTER MYID"))
	}
}

// While a slot moves, with its keys on two masters, no call fails, and none is charged twice.
func TestSlotMigration(t *testing.T) {
	masters := redistest.StartCluster(t, 3)
	for name, hide := range map[string]bool{"shown": false, "hidden": true} {
		t.Run(name, func(t *testing.T) {
			var client redis.UniversalClient = connectCluster(t, masters)
			if hide {
				client = hidden{client}
			}
			limiter := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)), ratelimit.WithPrefix(name), quiet())
			blocking := ratelimit.Rule{Name: "blocking", Limit: 20, Per: 100 * time.Millisecond, Block: 50 * time.Millisecond}
			var b Book
			over := make(chan struct{})
			go func() {
				defer close(over)
				for _, key := range keys {
					i := slotOf(masters[0], key) * 3 / 16384
					migrate(masters, masters[i], masters[(i+1)%3], key)
					migrate(masters, masters[(i+1)%3], masters[i], key)
				}
			}()
			Press(8*time.Second, 8, func(ctx context.Context, caller, n int) {
				key := keys[n%len(keys)]
				b.Call(ctx, limiter.Allow, ratelimit.Request{Rule: sums()[0], Key: key}, ratelimit.Request{Rule: blocking, Key: key},
					ratelimit.Request{Rule: sums()[1], Key: key})
				time.Sleep(time.Millisecond)
			})
			<-over
			requireSums(t, &b, limiter, sums()[:2], nil)
			report(t, &b)
			if n := b.Count(Unknown); n > 0 {
				t.Errorf("%d of %d calls failed", n, len(b.Entries()))
			}
		})
	}
}

// report tells how many calls failed, for how long the longest took, and why.
func report(t *testing.T, b *Book) {
	causes, longest := map[string]int{}, int64(0)
	for _, e := range b.Entries() {
		longest = max(longest, e.Received-e.Sent)
		if e.Outcome == Unknown {
			words := strings.Fields(strings.TrimPrefix(e.Err.Error(), "store: "))
			causes[strings.Join(words[:min(6, len(words))], " ")]++
		}
	}
	t.Logf("%d calls were admitted, %d refused, %d failed; the longest took %v; failures %v", b.Count(Admitted), b.Count(Refused), b.Count(Unknown),
		time.Duration(longest)*time.Microsecond, causes)
}

// slotOf returns the slot of a hash tag.
func slotOf(server *redistest.Server, tag string) int {
	slot, _ := strconv.Atoi(server.Do("CLUSTER KEYSLOT " + tag))
	return slot
}
