package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// readers are clients of a cluster that read from replicas, and one that does not. None has RouteByLatency: with it, go-redis itself has a race when
// it finds a new server.
func readers(t *testing.T, cluster redistest.Cluster) map[string]redis.UniversalClient {
	all := map[string]redis.UniversalClient{}
	for name, o := range map[string]*redis.ClusterOptions{
		"masters": {}, "ReadOnly": {ReadOnly: true}, "RouteRandomly": {RouteRandomly: true},
	} {
		o.Addrs = cluster.Addrs()
		c := redis.NewClusterClient(o)
		t.Cleanup(func() { _ = c.Close() })
		all[name] = c
	}
	return all
}

// detach makes a server stay as it is when it is a replica: it cannot sign in to its master.
func detach(s *redistest.Server) {
	s.Do("CONFIG SET masteruser nobody")
	s.Do("CONFIG SET masterauth x")
}

// Whatever replicas a client reads from, settings, rules, processes and changes are those of the master.
func TestReadsAreCurrent(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	for _, replica := range cluster.Replicate(t) {
		detach(replica)
		replica.Do("CLIENT KILL TYPE master")
		replica.WaitFor("INFO replication", "master_link_status:down")
	}
	for name, c := range readers(t, cluster) {
		t.Run(name, func(t *testing.T) {
			f, follower := of(c, name), of(c, name)
			follower.Hide()
			register(follower, "program", 1)
			for n := range int64(10) {
				set(t, f, "kim", override("r", "", n))
				if follower.Beat(); limit(follower, "r", "") != n {
					t.Fatalf("got the limit %d, want %d, %+v", limit(follower, "r", ""), n, follower.Status())
				}
			}
			rules, err := f.Rules(t.Context())
			if err != nil || len(rules) != 1 || len(rules[0].Processes) != 1 {
				t.Errorf("got %v, %v", rules, err)
			}
			if changes, err := f.Changes(t.Context()); err != nil || len(changes) != 10 {
				t.Errorf("got %v, %v", changes, err)
			}
			if h, err := f.Health(t.Context()); err != nil || h.Version != 10 || h.Memory == 0 {
				t.Errorf("got %+v, %v", h, err)
			}
		})
	}
}

// When a replica has taken over, and the old master is a replica that is behind, all follow the new one, also clients that have not noticed.
func TestReadsAreCurrentAfterATakeover(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 1)
	replica := cluster.Replicate(t)[0]
	all := readers(t, cluster)
	fleets := map[string]*fleet.Fleet{}
	for name, c := range all {
		f := of(c, "p")
		set(t, f, "kim", override(name, "", 1))
		fleets[name] = f
	}
	direct := redis.NewClient(&redis.Options{Addr: replica.Addr, PoolSize: 1})
	defer direct.Close()
	direct.Do(t.Context(), "READONLY")
	redistest.Eventually(t, "the replica has all", func() bool { return direct.Get(t.Context(), "p.fleet:{p}:version").Val() == "3" })
	for _, f := range fleets {
		f.Beat()
	}
	detach(cluster[0])
	replica.Do("CLUSTER FAILOVER TAKEOVER")
	cluster[0].WaitFor("ROLE", "slave")
	newest := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{replica.Addr}})
	defer newest.Close()
	set(t, of(newest, "p"), "kim", override("r", "", 7))
	for name, f := range fleets {
		if f.Beat(); limit(f, "r", "") != 7 || limit(f, name, "") != 1 || f.Status().Lost > 0 {
			t.Errorf("%s: got %d, %d, %+v", name, limit(f, "r", ""), limit(f, name, ""), f.Status())
		}
	}
}

// While a slot moves from one master to another, and after that, settings are those of the slot, and none seems lost.
func TestReadsWhileASlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	all := readers(t, cluster)
	var slot int
	if _, err := fmt.Sscan(cluster[0].Do("CLUSTER KEYSLOT p"), &slot); err != nil {
		t.Fatal(err)
	}
	from, to := cluster[slot*2/16384], cluster[1-slot*2/16384]
	fleets := map[string]*fleet.Fleet{}
	for name, c := range all {
		f := of(c, "p")
		set(t, f, "kim", override(name, "", 1))
		fleets[name] = f
	}
	check := func(when string) {
		t.Helper()
		for name, f := range fleets {
			if f.Beat(); limit(f, name, "") != 1 || f.Status().Lost > 0 || f.Status().Err != nil {
				t.Errorf("%s, %s: got %d, %+v", when, name, limit(f, name, ""), f.Status())
			}
		}
	}
	to.Do(fmt.Sprint("CLUSTER SETSLOT ", slot, " IMPORTING ", from.Do("CLUSTER MYID")))
	from.Do(fmt.Sprint("CLUSTER SETSLOT ", slot, " MIGRATING ", to.Do("CLUSTER MYID")))
	check("before keys move")
	host, port, _ := strings.Cut(to.Addr, ":")
	keys := strings.Join(strings.Fields(from.Do(fmt.Sprint("CLUSTER GETKEYSINSLOT ", slot, " 100"))), " ")
	from.Do(fmt.Sprintf(`MIGRATE %s %s "" 0 5000 KEYS %s`, host, port, keys))
	check("when all keys have moved")
	for _, s := range []*redistest.Server{to, from} {
		s.Do(fmt.Sprint("CLUSTER SETSLOT ", slot, " NODE ", to.Do("CLUSTER MYID")))
	}
	check("when the slot has moved")
	for name, f := range fleets {
		set(t, f, "kim", override("r", name, 3))
	}
	check("when settings were made there")
}

// foreign is a client of a type that nobody knows.
type foreign struct{ redis.UniversalClient }

// If it is not known where a client reads, the limiter says so once.
func TestForeignClient(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer c.Close()
	for _, client := range []redis.UniversalClient{c, foreign{c}} {
		var log lines
		store := redisstore.New(client, redisstore.WithTimeout(time.Minute))
		for _, prefix := range []string{"p", "q"} {
			l := ratelimit.New(store, ratelimit.WithPrefix(prefix), ratelimit.WithLogger(log.logger()))
			if err := l.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_, isForeign := client.(foreign)
		if n := strings.Count(log.String(), "may be read from a replica"); n > 1 || (n == 1) != isForeign {
			t.Errorf("%T: logged %s", client, log.String())
		}
	}
}
