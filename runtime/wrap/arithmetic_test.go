package wrap_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/runtime/wrap"
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
		"add":       {wrap.Add[int64], (*big.Int).Add},
		"subtract":  {wrap.Subtract[int64], (*big.Int).Sub},
		"multiply":  {wrap.Multiply[int64], (*big.Int).Mul},
		"remainder": {wrap.Remainder[int64], (*big.Int).Rem},
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
		if v, err := wrap.To[int32](n); (err == nil) != (n >= math.MinInt32 && n <= math.MaxInt32) || err == nil && int64(v) != n {
			t.Fatalf("To[int32](%d) = %d, %v", n, v, err)
		}
		if v, err := wrap.To[uint64](n); (err == nil) != (n >= 0) || err == nil && v != uint64(n) {
			t.Fatalf("To[uint64](%d) = %d, %v", n, v, err)
		}
		u := uint64(n)
		if v, err := wrap.To[int64](u); (err == nil) != (u <= math.MaxInt64) || err == nil && uint64(v) != u {
			t.Fatalf("To[int64](%d) = %d, %v", u, v, err)
		}
		if v, err := wrap.Negate(n); (err == nil) != (n != math.MinInt64) || err == nil && v != -n {
			t.Fatalf("Negate(%d) = %d, %v", n, v, err)
		}
		if v, err := wrap.Negate(int8(n)); (err == nil) != (int8(n) != math.MinInt8) || err == nil && v != -int8(n) {
			t.Fatalf("Negate(int8 %d) = %d, %v", int8(n), v, err)
		}
		if v, err := wrap.Negate(uint8(n)); (err == nil) != (uint8(n) == 0) {
			t.Fatalf("Negate(uint8 %d) = %d, %v", uint8(n), v, err)
		}
		if v, err := wrap.Abs(int8(n)); (err == nil) != (int8(n) != math.MinInt8) || err == nil && int(v) != max(int(int8(n)), -int(int8(n))) {
			t.Fatalf("Abs(int8 %d) = %d, %v", int8(n), v, err)
		}
	})
}

// TestCompare compares integers of different signs and widths by their values.
func TestCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := edges.Draw(t, "a"), edges.Draw(t, "b")
		x, y, u := big.NewInt(a), big.NewInt(b), new(big.Int).SetUint64(uint64(b))
		if got := wrap.Compare(a, b); got != x.Cmp(y) {
			t.Fatalf("%d and %d: %d", a, b, got)
		}
		if got, back := wrap.Compare(a, uint64(b)), wrap.Compare(uint64(b), a); got != x.Cmp(u) || back != -got {
			t.Fatalf("%d and %d: %d and %d", a, uint64(b), got, back)
		}
		if got, want := wrap.Compare(int8(a), uint64(b)), big.NewInt(int64(int8(a))).Cmp(u); got != want {
			t.Fatalf("%d and %d: %d", int8(a), uint64(b), got)
		}
	})
}

// TestShifts checks that no shift loses a bit.
func TestShifts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, by := int(edges.Draw(t, "n")), rapid.IntRange(-1, 70).Draw(t, "by")
		want := new(big.Int).Lsh(big.NewInt(int64(n)), uint(max(0, by)))
		fits := by >= 0 && want.IsInt64() && int64(int(want.Int64())) == want.Int64()
		if got, err := wrap.ShiftLeft(n, by); (err == nil) != fits || fits && int64(got) != want.Int64() {
			t.Fatalf("%d << %d = %d, %v; expected %s", n, by, got, err, want)
		}
	})
}

// TestSums checks that a sum is exact, or an error.
func TestSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(edges, 0, 4).Draw(t, "list")
		want, fits := big.NewInt(0), true
		for _, n := range list {
			want.Add(want, big.NewInt(n))
			fits = fits && want.IsInt64() && int64(int(want.Int64())) == want.Int64() && int64(int(n)) == n
		}
		if got, err := wrap.Sum(list); (err == nil) != fits || fits && int64(got) != want.Int64() {
			t.Fatalf("%d, %v; expected %s", got, err, want)
		}
	})
	if got, err := wrap.Sum([]uint64{1, math.MaxUint64}); err == nil {
		t.Errorf("the sum of unsigned integers overflows: %d", got)
	}
}

// TestAmounts checks which floats are amounts: those near an integer are that integer, and nothing below 0 or above an int64 passes, but for the
// limit -1.
func TestAmounts(t *testing.T) {
	const fails = -2
	below := math.Nextafter(1<<63, 0)
	for _, c := range []struct {
		f        float64
		up, down int64
	}{
		{0, 0, 0}, {math.Copysign(0, -1), 0, 0}, {-1e-10, 0, 0}, {1e-10, 0, 0}, {1e-8, 1, 0}, {0.5, 1, 0}, {1 - 1e-10, 1, 1}, {1 - 1e-8, 1, 0},
		{0.1 * 3 * 10, 3, 3}, {1.1 * 1.1 * 100, 121, 121}, {0.29 * 100, 29, 29}, {2 + 1e-11, 3, 2}, {2 - 1e-11, 2, 1}, {2.1, 3, 2},
		{1e15 + 0.25, 1e15, 1e15}, {below, int64(below), int64(below)},
		{1 << 63, fails, fails}, {math.Inf(1), fails, fails}, {math.Inf(-1), fails, fails}, {math.NaN(), fails, fails}, {-1e-8, fails, fails},
		{-0.5, fails, fails}, {-1, fails, -1}, {-1 - 1e-15, fails, fails}, {-1.5, fails, fails}, {-2, fails, fails},
	} {
		up, upErr := wrap.RoundUp(c.f)
		down, downErr := wrap.RoundDown(c.f)
		if (upErr != nil) != (c.up == fails) || (downErr != nil) != (c.down == fails) || c.up != fails && (up != c.up || down != c.down) {
			t.Errorf("%v: up %d, %v, down %d, %v", c.f, up, upErr, down, downErr)
		}
	}
	if _, err := wrap.RoundUp(math.NaN()); err == nil || err.Error() != "found NaN; expected a number from 0 to 2^63-1" {
		t.Error(err)
	}
}

func TestTruncate(t *testing.T) {
	for f, want := range map[float64]int{2.9: 2, -2.9: -2, math.MinInt: math.MinInt, math.Nextafter(-math.MinInt, 0): int(math.Nextafter(-math.MinInt, 0))} {
		if got, err := wrap.Truncate(f); err != nil || got != want {
			t.Errorf("%v: %d, %v", f, got, err)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -math.MinInt, math.MinInt * 1.1} {
		if got, err := wrap.Truncate(f); err == nil {
			t.Errorf("%v: %d", f, got)
		}
	}
}
