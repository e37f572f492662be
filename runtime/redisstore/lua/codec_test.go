package lua

import (
	"math"
	"testing"
)

// number returns an integer for every double, even for NaN and infinity.
func TestNumber(t *testing.T) {
	for f, want := range map[float64]int64{
		0: 0, -1: -1, 1 << 53: 1 << 53, 1e300: 1 << 62, -1e300: -1 << 62, math.Inf(1): 1 << 62, math.Inf(-1): -1 << 62,
	} {
		if got := number(packed(f)); got != want {
			t.Errorf("%v gives %d, want %d", f, got, want)
		}
	}
	if got := number(packed(math.NaN())); got != 0 {
		t.Errorf("what is not a number gives %d", got)
	}
}
