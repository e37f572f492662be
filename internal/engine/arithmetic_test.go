package engine

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

const century = 100 * 366 * 24 * 3600 * 1_000_000

// The time in which a bucket gains permits stays exact over any number of additions.
func TestGain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 10_000_000).Draw(t, "limit")
		per := rapid.Int64Range(1, 3660*24*3600*1_000_000).Draw(t, "per")
		c := Claim{Ask: Ask{Rule: &Rule{Per: per}, Limit: limit}}
		whole, parts := rapid.Int64Range(-century, century).Draw(t, "whole"), rapid.Int64Range(0, limit-1).Draw(t, "parts")
		want := sum(whole, parts, limit)
		for range rapid.IntRange(1, 20).Draw(t, "times") {
			most := min(10_000_000, century/max(per/limit, 1))
			n := rapid.Int64Range(-most, most).Draw(t, "permits")
			if whole < -century || whole > century {
				n = 0
			}
			whole, parts = c.gain(whole, parts, n)
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

// MulDiv is exact even if the product has more bits than an int64.
func TestMulDiv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 24 * 3600 * 1_000_000
		c := rapid.Int64Range(1, most).Draw(t, "c")
		a, b := rapid.Int64Range(0, 2*c).Draw(t, "a"), rapid.Int64Range(0, 2*c).Draw(t, "b")
		product := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want, rest := product.QuoRem(product, big.NewInt(c), new(big.Int))
		if rest.Sign() > 0 {
			want.Add(want, big.NewInt(1))
		}
		if got := MulDiv(a, b, c); big.NewInt(got).Cmp(want) != 0 {
			t.Fatalf("%d*%d/%d, rounded up, is %d, want %s", a, b, c, got, want)
		}
	})
}

// MulDiv returns a hundred years instead of a longer time.
func TestMulDivOfLongTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.OneOf(rapid.Int64Range(1, 10_000_000), rapid.SampledFrom([]int64{1, 10_000_000})) // these two have the longest product
		old, limit := limits.Draw(t, "old"), limits.Draw(t, "limit")
		d := rapid.OneOf(rapid.Int64Range(0, longest), rapid.Just[int64](longest)).Draw(t, "time")
		want := new(big.Int).Mul(big.NewInt(d), big.NewInt(old))
		rest := new(big.Int)
		want.QuoRem(want, big.NewInt(limit), rest)
		if rest.Sign() > 0 {
			want.Add(want, big.NewInt(1))
		}
		got := MulDiv(d, old, limit)
		if most := big.NewInt(longest); want.Cmp(most) > 0 {
			want = most
		}
		if want.Cmp(big.NewInt(got)) != 0 {
			t.Fatalf("%d*%d/%d is %d, want %s", d, old, limit, got, want)
		}
	})
}

// A change of the limit leaves the number of permits missing from a bucket as it is, even if the time to fill the burst at the old limit
// overflows an int64.
func TestChangeFromALowLimit(t *testing.T) {
	const per = 15 * 24 * 3600 * second
	for _, kind := range []Kind{TokenBucket, Prepaid} {
		b := bucket{full: 1000*second + per, last: 1000 * second, limit: 1} // one permit is missing
		c := Claim{Ask: Ask{Rule: &Rule{Kind: kind, Per: per}, Limit: 10_000_000, Burst: 10_000_000}}
		if got := b.at(&c, 1000*second); got.full != 1000*second+per/c.Limit || got.parts != 0 {
			t.Errorf("%s: the bucket is full in %d us and %d parts, want %d", kind, got.full-1000*second, got.parts, per/c.Limit)
		}
	}
}
