package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// hidden is a client of a cluster whose type does not show that.
type hidden struct{ redis.UniversalClient }

// Slots are computed as in the Redis Cluster specification.
func TestSlotRange(t *testing.T) {
	t.Parallel()
	server := redistest.StartCluster(t, 1)[0]
	for _, tag := range []string{"a", "k7", "123456789", "Straße", "a%3Ab"} {
		var slot int
		if _, err := fmt.Sscan(server.Do("CLUSTER KEYSLOT "+tag), &slot); err != nil || slotRange(tag) != slot/slotsOfARange {
			t.Errorf("%s: got range %d, want that of slot %d, error %v", tag, slotRange(tag), slot, err)
		}
	}
}

// While servers do not agree which of them has a key, and each redirects callers to another, calls keep asking.
func TestServersThatDoNotAgree(t *testing.T) {
	t.Parallel()
	masters := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: masters.Addrs(), ReadTimeout: time.Minute})
	defer client.Close()
	for name, c := range map[string]redis.UniversalClient{"shown": client, "hidden": hidden{client}} {
		s := New(c, WithTimeout(time.Minute)).(*store)
		slot, err := strconv.Atoi(masters[0].Do("CLUSTER KEYSLOT " + name))
		if err != nil {
			t.Fatal(err)
		}
		owner := slot * len(masters) / 16384
		pair := []*redistest.Server{masters[owner], masters[(owner+1)%len(masters)]}
		give := func(to *redistest.Server) {
			pair[0].Do(fmt.Sprint("CLUSTER SETSLOT ", slot, " NODE ", to.Do("CLUSTER MYID")))
		}
		for _, m := range pair {
			m.Do("CONFIG RESETSTAT")
		}
		give(pair[1])
		result := make(chan error, 1)
		go func() {
			call := of(minute, 1000, name)
			_, err := s.Decide(context.Background(), &call)
			result <- err
		}()
		for _, m := range pair {
			m.WaitFor("INFO errorstats", "MOVED:count=")
		}
		select {
		case err := <-result:
			t.Errorf("%s: before the servers agreed, the call ended with %v", name, err)
		case <-time.After(100 * time.Millisecond): // longer than a client itself follows redirections
			give(pair[0])
			if err := <-result; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		give(pair[0])
	}
}

// A client for one server that is connected to a node of a cluster fails with advice, in Ping, in the first call whose key is elsewhere, and
// where settings are read. A cluster of one node, or a proxy before a cluster, needs no other client: it refuses only what is in several slots.
func TestClientOfAClusterNode(t *testing.T) {
	t.Parallel()
	const advice = "use redis.NewClusterClient"
	s := New(connect(t, redistest.StartCluster(t, 3)[0].Addr), asking...).(*store)
	requirePing(t, s, advice)
	admitted, failed := 0, 0
	for i := range 64 {
		call := of(minute, 1, fmt.Sprint(i))
		switch v, err := s.Decide(t.Context(), &call); {
		case v.Admitted:
			admitted++
		case err == nil || !strings.Contains(err.Error(), advice) || strings.Contains(err.Error(), "\n"):
			t.Errorf("got %+v, error %v; want advice", v, err)
		default:
			failed++
		}
	}
	if admitted == 0 || failed == 0 {
		t.Errorf("%d calls for the node's own keys were admitted, %d for others failed", admitted, failed)
	}
	whole := New(connect(t, redistest.StartCluster(t, 1)[0].Addr), asking...).(*store)
	if err := whole.Ping(t.Context(), "p", rulesOfAllKinds()); err != nil {
		t.Error(err)
	}
	call := of(minute, 1, "a", "b", "c")
	for _, want := range []bool{true, false} {
		if v, err := whole.Decide(t.Context(), call.Clone()); err != nil || v.Admitted != want {
			t.Errorf("a cluster of one node: got %+v, error %v; want admitted: %t", v, err, want)
		}
	}
}

// The loss of a master fails only the calls for its own keys, even if the client hides that there are other masters.
func TestLostMaster(t *testing.T) {
	t.Parallel()
	masters := redistest.StartCluster(t, 3, "--cluster-require-full-coverage", "no")
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: masters.Addrs(), ReadTimeout: time.Minute})
	defer client.Close()
	stores := map[string]*store{"shown": New(client, asking...).(*store), "hidden": New(hidden{client}, asking...).(*store)}
	for name, s := range stores {
		call := of(minute, 1000, "a", "b", "c")
		if _, err := s.Decide(t.Context(), &call); err != nil || !s.servers.Split.Load() {
			t.Fatalf("%s: the store does not see a cluster; error %v", name, err)
		}
	}
	masters[0].Stop()
	const border = 16384 / 3 / slotsOfARange // the range that two masters share
	for name, s := range stores {
		var failed, others atomic.Int64
		var callers sync.WaitGroup
		for caller := range 8 {
			callers.Go(func() {
				for n := range 100 {
					key := fmt.Sprint(name, caller, "-", n)
					call := of(minute, 10, key)
					_, err := s.Decide(context.Background(), &call)
					switch slots := slotRange(key); {
					case err != nil && slots < border:
						failed.Add(1)
					case err != nil && slots > border:
						others.Add(1)
					}
				}
			})
		}
		callers.Wait()
		if failed.Load() == 0 || others.Load() > 0 {
			t.Errorf("%s: %d calls for keys of the lost master failed, and %d others", name, failed.Load(), others.Load())
		}
	}
}
