package ratelimit_test

import (
	"runtime"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// A program may keep many decisions, to refund them later. Each holds what Refund and Settle need, and no more.
func TestMemoryOfAKeptDecision(t *testing.T) {
	const n, most = 10_000, 960
	l := ratelimit.New(memstore.New())
	rule := ratelimit.Rule{Name: "r", Algorithm: ratelimit.TokenBucket, Limit: 1_000_000, Per: time.Second}
	quota := rule
	quota.Name = "q"
	kept := make([]ratelimit.Decision, n)
	for name, decide := range map[string]func() (ratelimit.Decision, error){
		"plain": func() (ratelimit.Decision, error) {
			return l.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: "k"}, ratelimit.Request{Rule: quota, Key: "k"})
		},
		"with quotas": func() (ratelimit.Decision, error) {
			ctx, _ := ratelimit.WithReport(t.Context())
			return l.Allow(ctx, ratelimit.Request{Rule: rule, Key: "k"}, ratelimit.Request{Rule: quota, Key: "k"})
		},
	} {
		clear(kept)
		before := heap()
		for i := range kept {
			d, err := decide()
			if err != nil || !d.Allowed {
				t.Fatalf("%+v, error %v", d, err)
			}
			kept[i] = d
		}
		used := (heap() - before) / n
		t.Logf("%s: %d bytes", name, used)
		if used > most {
			t.Errorf("a decision %s holds %d bytes, want at most %d", name, used, most)
		}
		runtime.KeepAlive(kept)
	}
}

// heap returns the bytes of memory in use.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
