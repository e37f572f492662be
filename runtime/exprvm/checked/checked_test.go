package checked_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/runtime/exprvm/checked"
)

// edges are values near the overflows of a 64-bit integer.
var edges = rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3), rapid.SampledFrom([]int64{
	math.MinInt64, math.MinInt64 + 1, math.MaxInt64, math.MaxInt64 - 1, math.MinInt32, math.MaxInt32, math.MaxUint32, 1 << 32, -1 << 32,
}))

// TestArithmetic compares the results with those of math/big: each is exact, or an error.
func TestArithmetic(t *testing.T) {
	for name, op := range map[string]struct {
		checked func(a, b int64) (int64, error)
		exact   func(z, a, b *big.Int) *big.Int
	}{
		"add":       {checked.Add[int64], (*big.Int).Add},
		"subtract":  {checked.Subtract[int64], (*big.Int).Sub},
		"multiply":  {checked.Multiply[int64], (*big.Int).Mul},
		"remainder": {checked.Remainder[int64], (*big.Int).Rem},
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			a, b := edges.Draw(t, "a"), edges.Draw(t, "b")
			got, err := op.checked(a, b)
			if name == "remainder" && b == 0 {
				if err == nil {
					t.Fatalf("%d %% 0 = %d", a, got)
				}
				return
			}
			want := op.exact(new(big.Int), big.NewInt(a), big.NewInt(b))
			if want.IsInt64() != (err == nil) || err == nil && got != want.Int64() {
				t.Fatalf("%d and %d give %d, %v; expected %s", a, b, got, err, want)
			}
		}))
	}
}

// TestConversions checks that a conversion between types of different widths and signs keeps the value or returns an error.
func TestConversions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := edges.Draw(t, "n")
		if v, err := checked.To[int32](n); (err == nil) != (n >= math.MinInt32 && n <= math.MaxInt32) || err == nil && int64(v) != n {
			t.Fatalf("To[int32](%d) = %d, %v", n, v, err)
		}
		if v, err := checked.To[uint64](n); (err == nil) != (n >= 0) || err == nil && v != uint64(n) {
			t.Fatalf("To[uint64](%d) = %d, %v", n, v, err)
		}
		u := uint64(n)
		if v, err := checked.To[int64](u); (err == nil) != (u <= math.MaxInt64) || err == nil && uint64(v) != u {
			t.Fatalf("To[int64](%d) = %d, %v", u, v, err)
		}
		if v, err := checked.Negate(n); (err == nil) != (n != math.MinInt64) || err == nil && v != -n {
			t.Fatalf("Negate(%d) = %d, %v", n, v, err)
		}
		if v, err := checked.Negate(int8(n)); (err == nil) != (int8(n) != math.MinInt8) || err == nil && v != -int8(n) {
			t.Fatalf("Negate(int8 %d) = %d, %v", int8(n), v, err)
		}
		if v, err := checked.Negate(uint8(n)); (err == nil) != (uint8(n) == 0) {
			t.Fatalf("Negate(uint8 %d) = %d, %v", uint8(n), v, err)
		}
	})
}
