package wrap_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// TestNumbers compares sums, differences and products with exact ones.
func TestNumbers(t *testing.T) {
	near := rapid.Custom(func(t *rapid.T) int64 { // which reaches the ends of the range more often than chance would
		shift := rapid.IntRange(0, 64).Draw(t, "shift")
		return rapid.Int64().Draw(t, "bits")>>shift + rapid.Int64Range(-2, 2).Draw(t, "more")
	})
	for _, op := range []struct {
		name   string
		got    func(a, b int64) (int64, bool)
		narrow func(a, b int) (int, bool)
		want   func(z, a, b *big.Int) *big.Int
	}{
		{"add", wrap.Add[int64], wrap.Add[int], (*big.Int).Add},
		{"subtract", wrap.Subtract[int64], wrap.Subtract[int], (*big.Int).Sub},
		{"multiply", wrap.Multiply[int64], wrap.Multiply[int], (*big.Int).Mul},
	} {
		t.Run(op.name, rapid.MakeCheck(func(t *rapid.T) {
			a, b := near.Draw(t, "a"), near.Draw(t, "b")
			want := op.want(new(big.Int), big.NewInt(a), big.NewInt(b))
			got, ok := op.got(a, b)
			if ok != want.IsInt64() || ok && got != want.Int64() {
				t.Errorf("%d and %d give %d, %t; want %d", a, b, got, ok, want)
			}
			if int64(int(a)) != a || int64(int(b)) != b {
				return
			}
			n, ok := op.narrow(int(a), int(b))
			fits := want.IsInt64() && int64(int(want.Int64())) == want.Int64()
			if ok != fits || ok && int64(n) != want.Int64() {
				t.Errorf("ints %d and %d give %d, %t; want %d", a, b, n, ok, want)
			}
		}))
	}
	const least, greatest = -1 << 63, 1<<63 - 1
	for _, c := range [][2]int64{{least, -1}, {-1, least}, {greatest, 1}, {greatest, greatest}, {least, least}, {0, least}, {1, least}, {2, 1 << 62}} {
		a, b := big.NewInt(c[0]), big.NewInt(c[1])
		_, add := wrap.Add(c[0], c[1])
		_, subtract := wrap.Subtract(c[0], c[1])
		_, multiply := wrap.Multiply(c[0], c[1])
		if add != new(big.Int).Add(a, b).IsInt64() || subtract != new(big.Int).Sub(a, b).IsInt64() || multiply != new(big.Int).Mul(a, b).IsInt64() {
			t.Errorf("%d and %d: add %t, subtract %t, multiply %t", c[0], c[1], add, subtract, multiply)
		}
	}
	if d, ok := wrap.Multiply(time.Hour, 24); d != 24*time.Hour || !ok {
		t.Errorf("got %v, %t", d, ok)
	}
}
