package memstore_test

import (
	"context"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

func BenchmarkTake(b *testing.B) {
	rules := wrap.NewRules("sms.Sender.SendCode", ratelimit.Rule{Name: "x", Limit: 1000, Per: 50 * time.Microsecond})
	bucket := wrap.NewRules("sms.Sender.SendCode", ratelimit.Rule{Name: "z", Limit: 1000000, Per: time.Millisecond, Algorithm: ratelimit.TokenBucket})
	l := ratelimit.New(memstore.New())
	sliding, refilled := rules.On(l), bucket.On(l)
	ctx := context.Background()
	b.Run("sliding", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if wrap.Take(ctx, sliding, rules, "13800000000") != nil {
				b.Fatal()
			}
		}
	})
	b.Run("bucket", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if wrap.Take(ctx, refilled, bucket, "13800000000") != nil {
				b.Fatal()
			}
		}
	})
}
