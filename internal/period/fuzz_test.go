package period

import (
	"strings"
	"testing"
)

// FuzzParse parses arbitrary texts. Each is either an error with a position in the text, or a duration above zero. Formatting the duration and
// parsing it again gives the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"1m", "1d12h", "1.5h", "0.000000001s", "1w2d", "9223372036854775807ns", "99999999w", "1 m", "µs", "1µs", ".5s", "1..s", "-1s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, at, err := Parse("per", text)
		if err != nil {
			if at < 0 || at > len(text) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q: %q at %d", text, err, at)
			}
			return
		}
		if again, _, err := Parse("per", Format(d)); d <= 0 || err != nil || again != d {
			t.Errorf("%q is %d, which is written as %s, which is %d, %v", text, d, Format(d), again, err)
		}
	})
}
