package decide

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

const century = 100 * 366 * 24 * 3600 * 1_000_000

// What a bucket gains is exact, however long it is added up.
func TestGain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 10_000_000).Draw(t, "limit")
		per := rapid.Int64Range(1, 3660*24*3600*1_000_000).Draw(t, "per")
		whole, parts := rapid.Int64Range(-century, century).Draw(t, "whole"), rapid.Int64Range(0, limit-1).Draw(t, "parts")
		want := sum(whole, parts, limit)
		for range rapid.IntRange(1, 20).Draw(t, "times") {
			most := min(10_000_000, century/max(per/limit, 1))
			n := rapid.Int64Range(-most, most).Draw(t, "permits")
			if whole < -century || whole > century {
				n = 0
			}
			whole, parts = gain(whole, parts, n, limit, per)
			want.Add(want, new(big.Rat).Mul(big.NewRat(per, limit), new(big.Rat).SetInt64(n)))
			if got := sum(whole, parts, limit); got.Cmp(want) != 0 || parts < 0 || parts >= limit {
				t.Fatalf("%d and %d of %d parts, want %s", whole, parts, limit, want)
			}
		}
	})
}

func sum(whole, parts, limit int64) *big.Rat {
	sum := big.NewRat(parts, limit)
	return sum.Add(sum, new(big.Rat).SetInt64(whole))
}

// The product may have more bits than an int64.
func TestCeiling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 24 * 3600 * 1_000_000
		c := rapid.Int64Range(1, most).Draw(t, "c")
		a, b := rapid.Int64Range(0, 2*c).Draw(t, "a"), rapid.Int64Range(0, 2*c).Draw(t, "b")
		product := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want, rest := product.QuoRem(product, big.NewInt(c), new(big.Int))
		if rest.Sign() > 0 {
			want.Add(want, big.NewInt(1))
		}
		if got := ceiling(a, b, c); big.NewInt(got).Cmp(want) != 0 {
			t.Fatalf("%d*%d/%d, rounded up, is %d, want %s", a, b, c, got, want)
		}
	})
}

// What a bucket remembers of calls that wait goes when they are over, or gone.
func TestQueueEnds(t *testing.T) {
	for _, kind := range []Kind{Bucket, Prepaid, Warm} {
		rule := &Rule{Kind: kind, Per: 100, Warmup: 50}
		claim := func(at int64) *Claim { return &Claim{Rule: rule, Cost: 1, Limit: 10, Burst: 10, At: at} }
		queued := func(s State) *queue {
			if w, ok := s.(*warm); ok {
				return w.queue
			}
			return s.(*bucket).queue
		}
		s := NewState(rule)
		s.Commit(claim(0), 1000, 1000)
		if queued(s) != nil {
			t.Errorf("kind %d: a call that did not wait is remembered", kind)
		}
		waits := claim(5000)
		s.Commit(waits, 1000, 5000)
		s.Commit(claim(0), 1000, 1000)
		if q := queued(s); q == nil || len(q.charges) != 1 {
			t.Errorf("kind %d: of a call that waits, and one that does not, %+v is remembered", kind, q)
		}
		s.Commit(claim(0), 5000, 5000)
		if q := queued(s); q != nil {
			t.Errorf("kind %d: %+v is remembered after its time", kind, q)
		}
		s.Commit(waits, 5001, 9000)
		waits.At = 9000
		s.Return(waits, 5002)
		if q := queued(s); q != nil {
			t.Errorf("kind %d: %+v is remembered of a call that was given back", kind, q)
		}
	}
}

// A place behind a queue is as far away as the permits before it need, and exactly so after any of them came back.
func TestPlacesOfABucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := &Rule{Kind: Bucket, Per: rapid.Int64Range(1, 1000).Draw(t, "per")}
		limit := rapid.Int64Range(1, 10).Draw(t, "limit")
		s, now := NewState(rule), int64(1_000_000)
		var taken []*Claim
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			c := &Claim{Rule: rule, Cost: rapid.Int64Range(1, limit).Draw(t, "cost"), Limit: limit, Burst: limit}
			c.At = max(s.Earliest(c, now), now+rapid.SampledFrom([]int64{0, 0, 500}).Draw(t, "after"))
			s.Commit(c, now, c.At)
			taken = append(taken, c)
		}
		for _, c := range rapid.Permutation(taken).Draw(t, "order") {
			s.Return(c, now)
		}
		all := &Claim{Rule: rule, Cost: limit, Limit: limit, Burst: limit}
		if at := s.Earliest(all, now); at != now {
			t.Fatalf("all was given back, and a full bucket is %d away", at-now)
		}
	})
}
