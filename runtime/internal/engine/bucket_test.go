package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Programs with different limits share a bucket, and the limit of each changes. Whatever they ask and wait for, no span has more permits than
// the burst and what the bucket gains in it at the greatest limit. Calls also give permits back, in any order.
func TestChangedLimitsOfABucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{Kind: rapid.SampledFrom([]Kind{TokenBucket, LeakyBucket}).Draw(t, "kind"), Per: 1000}
		burst := int64(1)
		if rule.Kind == TokenBucket {
			burst = rapid.Int64Range(1, 8).Draw(t, "burst")
		}
		limits := rapid.SliceOfN(rapid.SampledFrom([]int64{1, 3, 7, 10, 100}), 1, 3).Draw(t, "limits")
		cell, now := NewCell(&rule), int64(1_000_000*second)
		var taken []Claim
		for range 60 {
			now += rapid.SampledFrom([]int64{0, 0, 1, 10, 99, 300, 2000}).Draw(t, "later")
			if len(taken) > 0 && rapid.IntRange(0, 3).Draw(t, "gives back") == 0 {
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "call")
				back := Call{Claims: []Claim{taken[i]}}
				back.Claims[0].Delta = -taken[i].Charged
				back.Adjust([]*Cell{&cell}, now)
				taken = slices.Delete(taken, i, i+1)
				continue
			}
			c := Claim{Rule: &rule, Cost: rapid.Int64Range(1, burst).Draw(t, "cost"), Burst: burst}
			c.Limit = rapid.SampledFrom(limits).Draw(t, "limit")
			c.Wait = rapid.SampledFrom([]int64{0, 0, 500, 5000}).Draw(t, "wait")
			call := Call{Claims: []Claim{c}, Refused: rapid.IntRange(0, 3).Draw(t, "refused") == 0, Peek: rapid.IntRange(0, 5).Draw(t, "peek") == 0}
			if v := call.Decide([]*Cell{&cell}, now); v.Admitted && !call.Peek {
				taken = append(taken, call.Claims[0])
			}
		}
		slices.SortFunc(taken, func(a, b Claim) int { return int(a.At - b.At) })
		for i, first := range taken {
			sum := int64(0)
			for _, last := range taken[i:] {
				sum += last.Charged
				if most := burst + (last.At-first.At+1)*slices.Max(limits)/rule.Per; sum > most {
					t.Fatalf("%d permits from %d to %d, at most %d may be", sum, first.At, last.At, most)
				}
			}
		}
	})
}
