package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// modelled has a rule of each algorithm, and those of one key that count members, or block.
func modelled() []ratelimit.Rule {
	const per = 60 * time.Millisecond
	return append(rules(),
		ratelimit.Rule{Name: "distinct", Limit: 3, Per: per, Distinct: "{member}"},
		ratelimit.Rule{Name: "distinct-calendar", Limit: 3, Cron: "* * * * * *", Distinct: "{member}"},
		ratelimit.Rule{Name: "block", Limit: 6, Per: per, Block: 2 * per / 3},
	)
}

func modelOf(rule ratelimit.Rule, operations []Operation) Model {
	var entries []Entry
	for _, o := range operations {
		if !o.Change && !o.Waits {
			entries = append(entries, o.Entry)
		}
	}
	bucket := rule.Algorithm == ratelimit.TokenBucket || rule.Algorithm == ratelimit.LeakyBucket
	waits := slices.ContainsFunc(operations, func(o Operation) bool { return o.Waits })
	return Model{LawOf(rule, entries), rule.Distinct != "", rule.Block.Microseconds(), bucket, waits}
}

// tester is a client that makes operations under one rule.
type tester struct {
	limiter *ratelimit.Limiter
	rule    ratelimit.Rule
	ids     *atomic.Int64
	kinds   int // of calls: one permit, two, up to three, with a wait
	done    []Operation
}

// call makes a call of a random kind, and may change what it was charged.
func (c *tester) call() {
	q := ratelimit.Request{Rule: c.rule, Key: "k", Cost: 1}
	o, decide := Operation{ID: int(c.ids.Add(1))}, Decide(c.limiter.Allow)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	prepaid := c.rule.Prepay || c.rule.Warmup > 0
	kind := rand.IntN(max(1, c.kinds))
	switch single := c.rule.Algorithm == ratelimit.LeakyBucket; {
	case c.rule.Distinct != "":
		q.Member = fmt.Sprint("member", rand.IntN(6))
	case kind == 1 && !single:
		q.Cost = 2
	case kind == 2 && !single && !prepaid:
		q.UpTo, q.Cost = true, 3
	case kind == 3 && c.rule.Algorithm != ratelimit.SlidingCounter && c.rule.Block == 0:
		o.Waits, decide = true, c.limiter.Wait
		deadline, stop := context.WithTimeout(ctx, 30*time.Millisecond)
		defer stop()
		ctx = deadline
		if rand.IntN(2) == 0 {
			time.AfterFunc(time.Millisecond, cancel) // it gives up
		}
	}
	var b Book
	d := b.Call(ctx, decide, q)
	o.Entry, o.UpTo, o.Taken, o.Remembered = b.entries[0], q.UpTo, d.Taken, d.Source == ratelimit.SourceMemory
	if o.UpTo && o.Outcome == Refused {
		o.Cost = 1
	}
	c.done = append(c.done, o)
	if o.Outcome == Admitted && !prepaid && c.kinds > 0 && rand.IntN(3) == 0 {
		c.change(d, o)
	}
}

// change gives back what a call was charged, or changes it.
func (c *tester) change(d ratelimit.Decision, o Operation) {
	o.Change, o.Cost, o.Sent = true, 0, time.Now().UnixMicro()
	var err error
	if c.rule.Distinct == "" && rand.IntN(2) == 0 {
		o.Cost = int64(rand.IntN(5))
		err = d.Settle(context.Background(), o.Cost)
	} else {
		err = d.Refund(context.Background())
	}
	if err != nil {
		o.Outcome, o.Err = Unknown, err
	}
	o.Received = time.Now().UnixMicro()
	c.done = append(c.done, o)
}

// operate lets some clients make calls under a rule, and returns all operations.
func operate(store ratelimit.Store, prefix string, rule ratelimit.Rule, kinds int, pause time.Duration) (all []Operation) {
	var ids atomic.Int64
	var group sync.WaitGroup
	testers := make([]tester, 5)
	for i := range testers {
		limiter := ratelimit.New(store, ratelimit.WithPrefix(prefix), quiet())
		testers[i] = tester{limiter: limiter, rule: rule, ids: &ids, kinds: kinds}
		group.Go(func() {
			for range 50 {
				testers[i].call()
				time.Sleep(time.Duration(rand.Int64N(int64(pause))))
			}
		})
	}
	group.Wait()
	for _, c := range testers {
		all = append(all, c.done...)
	}
	return all
}

// The model accepts no operations under a limit that is one higher or lower.
func TestModelRejectsAnotherLimit(t *testing.T) {
	for _, rule := range modelled() {
		all := operate(memstore.New(), "p", rule, 0, 8*time.Millisecond)
		if got := modelOf(rule, all).Linearizable(all); got != porcupine.Ok {
			t.Errorf("%s: %d operations are %s", rule.Name, len(all), got)
		}
		for _, by := range []int64{-1, +1} {
			other := rule
			other.Limit += by
			if rule.Burst > 0 {
				other.Burst += by
			}
			model := modelOf(other, all)
			if got := model.Linearizable(all); got != porcupine.Illegal && !(by > 0 && model.Law.isLoose()) {
				t.Errorf("%s: %d operations under a limit of %d are %s for those of %d", rule.Name, len(all), rule.Limit, got, other.Limit)
			}
		}
	}
}

// Each store decides as if one call came after the other, at times that never go back, by the law of the rule. That holds while
// connections break and scripts are forgotten, with calls that wait and give up, take what there is, or change what they were
// charged.
func TestStoresAreLinearizable(t *testing.T) {
	server := redistest.Start(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(t, 3).Addrs()})
	t.Cleanup(func() { _ = cluster.Close() })
	for name, c := range map[string]struct {
		store          ratelimit.Store
		disturb, plain bool
	}{
		"memory":           {store: memstore.New()},
		"redis":            {store: redisstore.New(connect(t, server.Addr))},
		"redis, disturbed": {store: redisstore.New(connect(t, server.Addr)), disturb: true},
		"cluster":          {store: redisstore.New(cluster)},
		"plain":            {store: plain.New(connect(t, server.Addr)), plain: true},
	} {
		for _, rule := range modelled() {
			if c.plain && rule.Algorithm != ratelimit.FixedWindow && (rule.Cron == "" || rule.Distinct != "") {
				continue
			}
			t.Run(name+"/"+rule.Name, func(t *testing.T) {
				if c.disturb {
					defer again(20*time.Millisecond, func() {
						serverFaults["client kill"].do(server)
						serverFaults["flush"].do(server)
					})()
				}
				kinds := 4
				if c.plain {
					kinds = 3 // no call waits
				}
				all := operate(c.store, strings.ReplaceAll(name, ", ", "-"), rule, kinds, 6*time.Millisecond)
				switch got := modelOf(rule, all).Linearizable(all); got {
				case porcupine.Illegal:
					t.Errorf("%d operations cannot be those of one limiter", len(all))
				case porcupine.Unknown:
					t.Logf("no order of %d operations was found in time", len(all))
				}
			})
		}
	}
}
