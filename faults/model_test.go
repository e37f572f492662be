package faults

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
		ratelimit.Rule{Name: "amounts", Limit: 6, Per: per, Amounts: true},
		ratelimit.Rule{Name: "distinct", Limit: 3, Per: per, Distinct: "{member}"},
		ratelimit.Rule{Name: "distinct-calendar", Limit: 3, Cron: "* * * * * *", Distinct: "{member}"},
		ratelimit.Rule{Name: "block", Limit: 6, Per: per, Block: 2 * per / 3},
	)
}

// The model rejects histories of a limit that is one too high; and one too low, where the law leaves no choice. Only virtual time passes.
func TestModelRejectsAnotherLimit(t *testing.T) {
	for _, rule := range modelled() {
		for kinds := 1; kinds <= allKinds; kinds++ {
			t.Run(fmt.Sprintf("%s, kinds %d", rule.Name, kinds), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					limiter := ratelimit.New(memstore.New(memstore.WithClock(time.Now)), quiet())
					clients := crowd{limiter: limiter, clients: 5, calls: 20, pace: 3 * time.Millisecond, kinds: kinds}
					loose := modelOf(rule, nil).Law.isLoose()
					tooHigh, tooLow := 0, 0
					for n := 0; n < 10 || n < 500 && (tooHigh == 0 || tooLow == 0 && !loose); n++ {
						h := clients.record(rule, fmt.Sprint("k", n))
						h.require(t)
						tooHigh += h.rejects(higher(rule, -1))
						tooLow += h.rejects(higher(rule, +1))
					}
					if tooHigh == 0 || tooLow == 0 && !loose {
						t.Errorf("of 500 histories, %d are rejected as those of a limit too high, %d of one too low", tooHigh, tooLow)
					}
				})
			})
		}
	}
}

// changes are the ways in which the limit of a rule changes in a history.
var changes = map[string]crowd{
	"lower":       {phases: []int64{6, 0}},
	"higher":      {phases: []int64{-2, 0}},
	"back":        {phases: []int64{0, 12, 0}},
	"same":        {phases: []int64{0, 0}},
	"overrides":   {phases: []int64{-1, 3, 0}, overrides: true},
	"two builds":  {phases: []int64{0, 4}, together: true},
	"older build": {phases: []int64{0, -3}, together: true},
}

// changing returns the clients of a change, and the rule with a limit that is small enough for short histories.
func changing(change crowd, limiter *ratelimit.Limiter, rule ratelimit.Rule) (crowd, ratelimit.Rule) {
	change.limiter, change.clients, change.calls, change.pace, change.kinds, change.leavers = limiter, 3, 5, 3*time.Millisecond, allKinds, 4
	rule.Limit = min(rule.Limit, 6)
	if rule.Limit < 4 {
		change.phases = slices.Clone(change.phases)
		for i := range change.phases {
			change.phases[i] = min(max(change.phases[i], -1), 2)
		}
	}
	return change, rule
}

// The model knows limits that change. It rejects histories of limits that are all one too high. Between the phases clients idle, are refused, and
// wait and all give up. In the phases they wait, also for windows after the next one, and change what other calls were charged before. Only virtual
// time passes.
func TestModelOfLimitsThatChange(t *testing.T) {
	for _, rule := range modelled() {
		for name, change := range changes {
			t.Run(rule.Name+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					limiter := ratelimit.New(memstore.New(memstore.WithClock(time.Now)), quiet())
					clients, rule := changing(change, limiter, rule)
					clients.patience = cmp.Or(4*rule.Per, 4*time.Second)
					tooHigh := 0
					for n := 0; n < 10 || n < 300 && tooHigh == 0; n++ {
						h := clients.record(rule, fmt.Sprint("k", n))
						h.require(t)
						tooHigh += h.rejects(higher(rule, -1))
					}
					if tooHigh == 0 {
						t.Error("none of 300 histories is rejected as one of limits too high")
					}
				})
			})
		}
	}
}

// Histories that were found once: those of a limiter, and those of one with a fault.
func TestHistories(t *testing.T) {
	files, err := filepath.Glob("testdata/histories/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var h history
		if err := json.Unmarshal(text, &h); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		want := porcupine.Ok
		if strings.HasPrefix(filepath.Base(file), "wrong-") {
			want = porcupine.Illegal
		}
		if got := h.check(); got != want {
			t.Errorf("%s: %d operations are %s", file, len(h.Operations), got)
		}
	}
}

// Each store decides as if one call came after the other, at times that never go back, by the law of the rule. That holds while
// connections break and scripts are forgotten, with calls that wait and give up, take what there is, or change what they were
// charged.
func TestStoresAreLinearizable(t *testing.T) {
	server, disturbed := redistest.Start(t), redistest.Start(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(t, 3).Addrs()})
	t.Cleanup(func() { _ = cluster.Close() })
	for name, c := range map[string]struct {
		store          ratelimit.Store
		disturb, plain bool
	}{
		"memory":           {store: memstore.New()},
		"redis":            {store: redisstore.New(connect(t, server.Addr))},
		"redis, disturbed": {store: redisstore.New(connect(t, disturbed.Addr)), disturb: true},
		"cluster":          {store: redisstore.New(cluster)},
		"plain":            {store: plain.New(connect(t, server.Addr)), plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.disturb {
				t.Cleanup(again(20*time.Millisecond, func() {
					serverFaults["client kill"].do(disturbed)
					serverFaults["flush"].do(disturbed)
				}))
			}
			limiter := ratelimit.New(c.store, ratelimit.WithPrefix(strings.ReplaceAll(name, ", ", "-")), quiet())
			clients := crowd{limiter: limiter, clients: 5, calls: 12, pace: 3 * time.Millisecond, kinds: allKinds}
			if c.plain {
				clients.kinds-- // no call waits
			}
			for _, rule := range modelled() {
				if c.plain && !isPlain(rule) {
					continue
				}
				t.Run(rule.Name, func(t *testing.T) {
					t.Parallel()
					for n := range 4 {
						clients.record(rule, fmt.Sprint("k", n)).require(t)
					}
				})
			}
		})
	}
}

// The same on Redis while limits change. A store on a cluster sends the same scripts.
func TestLimitsThatChangeOnRedis(t *testing.T) {
	server := redistest.Start(t)
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, rule := range modelled() {
				t.Run(rule.Name, func(t *testing.T) {
					t.Parallel()
					limiter := ratelimit.New(redisstore.New(connect(t, server.Addr)), ratelimit.WithPrefix(strings.ReplaceAll(name, " ", "-")), quiet())
					clients, rule := changing(change, limiter, rule)
					for n := range 2 {
						clients.record(rule, fmt.Sprint("k", n)).require(t)
					}
				})
			}
		})
	}
}

// isPlain reports whether the store without scripts has the rule.
func isPlain(rule ratelimit.Rule) bool {
	return rule.Algorithm == ratelimit.FixedWindow || rule.Cron != "" && rule.Distinct == ""
}
