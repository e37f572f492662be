package period

import (
	"strings"
	"testing"
)

// ParseEvery takes each number of a unit up to its bound, and no other text.
func TestParseEvery(t *testing.T) {
	for unit, u := range calendarUnits {
		for n := 1; n <= u.most; n++ {
			e := Every{n, unit}
			if got, err := ParseEvery(e.String()); got != e || err != nil {
				t.Errorf("%s is %v, error %v", e, got, err)
			}
		}
		for _, n := range []int{0, -1, u.most + 1} {
			if got, err := ParseEvery((Every{n, unit}).String()); err == nil {
				t.Errorf("%d%s is %v", n, unit, got)
			}
		}
	}
	for _, text := range []string{"", "1", "d", "mo", "01mo", "+1mo", "1 mo", "1mo ", "1MO", "1m", "1h", "1mo2d", "1.5y", "99999999999999999999d"} {
		_, err := ParseEvery(text)
		if err == nil || !strings.HasSuffix(err.Error(), "; expected 1d to 366d, 1w to 52w, 1mo to 12mo or 1y to 10y") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func TestWordsOfEvery(t *testing.T) {
	for text, want := range map[string]string{"1d": "day", "2w": "2 weeks", "1mo": "month", "3mo": "3 months", "1y": "year", "10y": "10 years"} {
		if e, err := ParseEvery(text); err != nil || e.Words() != want {
			t.Errorf("%s is %q, error %v; want %q", text, e.Words(), err, want)
		}
	}
}
