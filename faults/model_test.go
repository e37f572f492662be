package faults

import (
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

// The model knows limits that change. It rejects histories of limits that are all one too high. Between the phases
// clients idle, are refused, and wait and all give up. The calls of a calendar window can be in too many orders. Only virtual time passes.
func TestModelOfLimitsThatChange(t *testing.T) {
	rules := slices.DeleteFunc(modelled(), func(r ratelimit.Rule) bool { return r.Cron != "" })
	for _, rule := range rules {
		for name, phases := range map[string][]int64{"lower": {6, 0}, "higher": {-2, 0}, "back": {0, 12, 0}, "same": {0, 0}} {
			t.Run(rule.Name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					limiter := ratelimit.New(memstore.New(memstore.WithClock(time.Now)), quiet())
					clients := crowd{limiter: limiter, clients: 3, calls: 6, pace: 3 * time.Millisecond, kinds: 1, phases: phases, leavers: 4}
					if rule.Name == "leaky" || rule.Name == "warmup" { // of others, some histories have too many orders to try
						clients.kinds = allKinds
					}
					tooHigh := 0
					for n := 0; n < 6 || n < 200 && tooHigh == 0; n++ {
						h := clients.record(rule, fmt.Sprint("k", n))
						h.require(t)
						tooHigh += h.rejects(higher(rule, -1))
					}
					if tooHigh == 0 {
						t.Error("none of 200 histories is rejected as one of limits too high")
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
			if c.plain && !isPlain(rule) {
				continue
			}
			t.Run(name+"/"+rule.Name, func(t *testing.T) {
				if c.disturb {
					defer again(20*time.Millisecond, func() {
						serverFaults["client kill"].do(server)
						serverFaults["flush"].do(server)
					})()
				}
				limiter := ratelimit.New(c.store, ratelimit.WithPrefix(strings.ReplaceAll(name, ", ", "-")), quiet())
				clients := crowd{limiter: limiter, clients: 5, calls: 12, pace: 3 * time.Millisecond, kinds: allKinds}
				if c.plain {
					clients.kinds-- // no call waits
				}
				for n := range 4 {
					clients.record(rule, fmt.Sprint("k", n)).require(t)
				}
			})
		}
	}
}

// isPlain reports whether the store without scripts has the rule.
func isPlain(rule ratelimit.Rule) bool {
	return rule.Algorithm == ratelimit.FixedWindow || rule.Cron != "" && rule.Distinct == ""
}
