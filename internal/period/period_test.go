package period

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Parse reads the texts of Format, and those of package time.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Min(1).Draw(t, "duration"))
		for _, text := range []string{Format(want), want.String()} {
			if got, _, err := Parse("per", text); err != nil || got != want {
				t.Fatalf("%s is %d, error %v; want %d", text, got, err, want)
			}
		}
	})
}

// Decimal fractions of days are exact to the nanosecond.
func TestFractions(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0.1d": day / 10, "0.3w": 7 * day * 3 / 10, "0.000000000000011574074074d": 0,
		"0.5ns0.5ns": 0, "1.999999999999999999999999s": 2*time.Second - 1,
	} {
		if got, _, err := Parse("per", text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s is %d, error %v; want %d", text, got, err, want)
		}
	}
}

// An error is about the number or the unit that is wrong.
func TestErrors(t *testing.T) {
	for _, test := range []struct {
		text, want string
		at         int
	}{
		{"", "per is empty; expected a duration above zero, such as 90s, 24h or 1d", 0},
		{"day", `per is "day"; expected a duration above zero, such as 90s, 24h or 1d`, 0},
		{"1d.h", `per is "1d.h"; expected a duration above zero, such as 90s, 24h or 1d`, 2},
		{"1d12", `per is "1d12" without a unit; expected a duration above zero, such as 90s, 24h or 1d`, 2},
		{"1 m", `unexpected space in "1 m"; expected a duration above zero, such as 90s, 24h or 1d`, 1},
		{"1h2mo", `unknown unit "mo" in "1h2mo"; expected ns, us, ms, s, m, h, d or w`, 3},
		{"0s", `per is "0s"; expected a duration above zero, such as 90s, 24h or 1d`, 0},
		{"106751d1d", `per is "106751d1d", out of range; expected at most 106751d`, 0},
		{"99999999999999999999ns", `per is "99999999999999999999ns", out of range; expected at most 106751d`, 0},
		{"9223372036854775807ns0.9w", `per is "9223372036854775807ns0.9w", out of range; expected at most 106751d`, 0},
	} {
		if _, at, err := Parse("per", test.text); err == nil || err.Error() != test.want || at != test.at {
			t.Errorf("%s: got error %v at %d\nwant %s at %d", test.text, err, at, test.want, test.at)
		}
	}
}
