package memory

import (
	"context"
	"testing"
	"time"
	"unique"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// callOf returns a call of one claim, of a window that stays full and still admits each call.
func callOf(kind decide.Kind) *decide.Call {
	rule := &decide.Rule{Kind: kind, Per: 50}
	rule.Identify("r", "w")
	claim := decide.Claim{Rule: rule, Subject: "+8613800138000", Cost: 1, Limit: 10_000, Burst: 10_000}
	return &decide.Call{Prefix: unique.Make("p"), Claims: []decide.Claim{claim}}
}

func BenchmarkDecide(b *testing.B) {
	for name, kind := range map[string]decide.Kind{"sliding": decide.Log, "fixed": decide.Fixed, "bucket": decide.Bucket} {
		b.Run(name, func(b *testing.B) {
			store, call := New(nil, 1000), callOf(kind)
			b.ReportAllocs()
			for b.Loop() {
				if v, err := store.Decide(context.Background(), call); err != nil || !v.Admitted {
					b.Fatal(v, err)
				}
			}
		})
	}
	b.Run("the clock alone", func(b *testing.B) {
		c := clock{start: time.Now()}
		for b.Loop() {
			c.now()
		}
	})
}
