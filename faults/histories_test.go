//go:build faults

package faults

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// recordAll makes histories under all rules at once, each of some of the subjects, one after the other.
func (c *crowd) recordAll(rules []ratelimit.Rule, subjects []string) map[string][]history {
	all := make([][]history, len(rules))
	var group sync.WaitGroup
	for i, rule := range rules {
		group.Go(func() {
			for _, subject := range subjects {
				all[i] = append(all[i], c.record(rule, subject))
			}
		})
	}
	group.Wait()
	byRule := map[string][]history{}
	for i, rule := range rules {
		byRule[rule.Name] = all[i]
	}
	return byRule
}

// verdicts count the histories of each rule that cannot be those of a limit that is one too high.
type verdicts map[string]int

// add fails unless all histories are those of the limits.
func (v verdicts) add(t *testing.T, all map[string][]history) {
	t.Helper()
	for name, histories := range all {
		rejected, unknown, operations := 0, 0, 0
		for _, h := range histories {
			h.require(t)
			rejected += h.rejects(higher(h.Rule, -1))
			operations += len(h.Operations)
			for _, o := range h.Operations {
				if o.Outcome == Unknown && !o.Waits {
					unknown++
				}
			}
		}
		v[name] += rejected
		t.Logf("%s: %d operations in %d histories, %d unknown; %d histories are not those of a limit too high", name, operations,
			len(histories), unknown, rejected)
	}
}

// requireSharp fails if all histories of a rule would pass for those of a limit that is one too high.
func (v verdicts) requireSharp(t *testing.T) {
	t.Helper()
	for name, rejected := range v {
		if rejected == 0 {
			t.Errorf("%s: all histories would pass for those of a limit too high", name)
		}
	}
}

// some returns subjects for which a condition holds.
func some(n int, holds func(subject string) bool) (subjects []string) {
	for i := 0; len(subjects) < n; i++ {
		if subject := fmt.Sprint("k", i); holds(subject) {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

func anywhere(string) bool { return true }

// onFirst reports whether a subject is on the first of three masters.
func onFirst(masters redistest.Cluster) func(string) bool {
	return func(subject string) bool { return slotOf(masters[1], subject) <= 16384/3-1 }
}

// manyHistories is how many histories are made of each rule under a fault.
const manyHistories = 12

func crowdOf(store ratelimit.Store) crowd {
	return crowd{limiter: ratelimit.New(store, quiet()), clients: 4, calls: 12, pace: 10 * time.Millisecond, kinds: allKinds}
}

// Each store decides as if one call came after the other while servers fail in every way.
func TestLinearizableUnderServerFaults(t *testing.T) {
	v := verdicts{}
	for name, f := range serverFaults {
		t.Run("redis/"+name, func(t *testing.T) {
			server := redistest.Start(t, persistent...)
			clients := crowdOf(redisstore.New(connect(t, server.Addr)))
			clients.impatient = name == "contexts that end"
			stop := again(f.apart, func() { f.do(server) })
			all := clients.recordAll(modelled(), some(manyHistories, anywhere))
			stop()
			v.add(t, all)
		})
		t.Run("cluster/"+name, func(t *testing.T) {
			masters := redistest.StartCluster(t, 3, persistent...)
			clients := crowdOf(redisstore.New(connectCluster(t, masters)))
			clients.impatient = name == "contexts that end"
			subjects := some(manyHistories, onFirst(masters))
			apart := f.apart
			if name == "kill" {
				apart += 4 * time.Second // a master takes no writes for 2 s after it started
			}
			stop := again(apart, func() { f.do(masters[0]) })
			all := clients.recordAll(modelled(), subjects)
			stop()
			v.add(t, all)
		})
		t.Run("plain/"+name, func(t *testing.T) {
			server := redistest.Start(t, persistent...)
			clients := crowdOf(plain.New(connect(t, server.Addr)))
			clients.kinds-- // no call waits
			clients.impatient = name == "contexts that end"
			var rules []ratelimit.Rule
			for _, rule := range modelled() {
				if isPlain(rule) {
					rules = append(rules, rule)
				}
			}
			stop := again(f.apart, func() { f.do(server) })
			all := clients.recordAll(rules, some(manyHistories, anywhere))
			stop()
			v.add(t, all)
		})
	}
	t.Run("memory/contexts that end", func(t *testing.T) {
		clients := crowdOf(memstore.New())
		clients.impatient = true
		v.add(t, clients.recordAll(modelled(), some(manyHistories, anywhere)))
	})
	v.requireSharp(t)
}

// The same on a network that fails in every way.
func TestLinearizableUnderToxics(t *testing.T) {
	v := verdicts{}
	for name, toxic := range toxics {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			proxy := startProxy(t, server.Addr)
			clients := crowdOf(redisstore.New(connect(t, proxy.Listen)))
			stop := again(200*time.Millisecond, func() { toxic.apply(t, proxy) })
			all := clients.recordAll(modelled(), some(manyHistories, anywhere))
			stop()
			v.add(t, all)
		})
	}
	v.requireSharp(t)
}

// slow returns the rules with windows that outlast a failover. Buckets are faster, so that some calls pass.
func slow(rules []ratelimit.Rule) []ratelimit.Rule {
	for i := range rules {
		r, times := &rules[i], time.Duration(200)
		if r.Algorithm == ratelimit.TokenBucket || r.Algorithm == ratelimit.LeakyBucket {
			times = 20
		}
		r.Per, r.Warmup, r.Block = times*r.Per, times*r.Warmup, times*r.Block
		if r.Cron != "" {
			r.Cron = "* * * * *"
		}
	}
	return rules
}

// When a replica takes over, it may have missed charges, once: no more than one further limit is admitted.
func TestLinearizableUnderFailover(t *testing.T) {
	t.Run("cluster", func(t *testing.T) {
		masters, replicas := startCluster(t)
		promoted := func() { replicas[0].WaitFor("ROLE", "master") }
		requireFailover(t, connectCluster(t, masters), some(3, onFirst(masters)), masters[0], promoted)
	})
	t.Run("sentinels", func(t *testing.T) {
		master, replica, _, client := startSentinels(t)
		promoted := func() { replica.WaitFor("ROLE", "master") }
		requireFailover(t, client, some(3, anywhere), master, promoted)
	})
}

// requireFailover kills the master of all subjects while clients call.
func requireFailover(t *testing.T, client redis.UniversalClient, subjects []string, master *redistest.Server, promoted func()) {
	clients := crowdOf(redisstore.New(client))
	clients.failures = 1000
	clients.pace, clients.calls = 30*time.Millisecond, 30
	failed := make(chan Operation, 1)
	go func() {
		time.Sleep(400 * time.Millisecond)
		o := Operation{Failover: true, Entry: Entry{Sent: time.Now().UnixMicro()}}
		master.Stop()
		promoted()
		o.Received = time.Now().UnixMicro()
		failed <- o
	}()
	var group sync.WaitGroup
	var mu sync.Mutex
	all := map[string][]history{}
	for _, subject := range subjects {
		group.Go(func() {
			of := clients.recordAll(slow(modelled()), []string{subject})
			mu.Lock()
			defer mu.Unlock()
			for name, histories := range of {
				all[name] = append(all[name], histories...)
			}
		})
	}
	group.Wait()
	failover := <-failed
	for _, histories := range all {
		for i := range histories {
			histories[i].Operations = append(histories[i].Operations, failover)
		}
	}
	verdicts{}.add(t, all)
}
