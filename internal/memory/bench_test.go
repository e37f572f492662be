package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// admitting are rules that admit every call of a benchmark.
var admitting = []struct {
	name  string
	rule  engine.Rule
	limit int64
}{
	{"bucket", engine.Rule{Kind: engine.TokenBucket, Per: 10_000_000}, 1e8},
	{"fixed", engine.Rule{Kind: engine.FixedWindow, Per: 3_600_000_000}, 1e15},
	{"sliding", engine.Rule{Kind: engine.SlidingWindow, Per: 50}, 1000},
}

func BenchmarkHotKey(b *testing.B) {
	for _, a := range admitting {
		a.rule.Name, a.rule.Tag = "sms.Sender.SendCode", "10s"
		s := New(nil, 1e6, 1<<30)
		take := func(b *testing.B, call *engine.Call) {
			if v, err := s.Decide(context.Background(), call); err != nil || !v.Admitted {
				b.Fatal(v, err)
			}
		}
		b.Run(a.name, func(b *testing.B) {
			call := callOf("13800138000", a.limit, &a.rule)
			b.ReportAllocs()
			for b.Loop() {
				take(b, call)
			}
		})
		b.Run(a.name+" in parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				call := callOf("13800138000", a.limit, &a.rule)
				for pb.Next() {
					take(b, call)
				}
			})
		})
	}
}

func BenchmarkManyKeys(b *testing.B) {
	const keys = 1_000_000
	subjects := make([]string, keys)
	for i := range subjects {
		subjects[i] = fmt.Sprintf("user:%06d", i)
	}
	for _, a := range admitting {
		a.rule.Name, a.rule.Tag = "sms.Sender.SendCode", "10s"
		b.Run(a.name, func(b *testing.B) {
			s := New(nil, keys, 1<<40)
			call := callOf("", a.limit, &a.rule)
			for b.Loop() {
				call.Claims[0].Subject = subjects[rand.IntN(keys)]
				if v, err := s.Decide(context.Background(), call); err != nil || !v.Admitted {
					b.Fatal(v, err)
				}
			}
		})
	}
}

// callOf returns a call that takes one permit from each rule, under the given limit.
func callOf(subject string, limit int64, rules ...*engine.Rule) *engine.Call {
	call := &engine.Call{Prefix: "ratelimit"}
	for _, r := range rules {
		call.Claims = append(call.Claims, engine.Claim{Ask: engine.Ask{Rule: r, Subject: subject, Cost: 1, Limit: limit, Burst: limit}})
	}
	return call
}
