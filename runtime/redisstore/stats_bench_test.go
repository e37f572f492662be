package redisstore

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

func BenchmarkStats(b *testing.B) {
	rule := &engine.Rule{Name: "login", Tag: "1m"}
	for _, subjects := range []int{1, 100, 100_000} {
		calls := make([]engine.Call, subjects)
		for i := range calls {
			calls[i] = engine.Call{Prefix: "ratelimit", Claims: []engine.Claim{{Rule: rule, Subject: fmt.Sprint("+8613800", i)}}}
		}
		v := engine.Verdict{Answer: engine.Answer{Admitted: true}}
		b.Run(fmt.Sprint(subjects, " subjects"), func(b *testing.B) {
			s := &statistics{seed: maphash.MakeSeed(), rules: map[uint64]*counted{}}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				s.note(&calls[i], &v)
				if i++; i == subjects {
					i = 0
				}
			}
		})
		b.Run(fmt.Sprint(subjects, " subjects, parallel"), func(b *testing.B) {
			s := &statistics{seed: maphash.MakeSeed(), rules: map[uint64]*counted{}}
			b.RunParallel(func(p *testing.PB) {
				for i := 0; p.Next(); i++ {
					s.note(&calls[i%subjects], &v)
				}
			})
		})
	}
}
