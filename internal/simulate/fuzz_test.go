package simulate

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzCSV checks that a file gives an error of one line, or a load whose calls are sorted, within its length, and have its keys.
func FuzzCSV(f *testing.F) {
	f.Add("timestamp,key,cost\n2026-03-02T09:00:00Z,ann,2\n2026-03-02T08:00:00Z\n", int64(0))
	f.Add("0.000001,a\n1e3,b,7\n8999999999", int64(time.Hour))
	f.Add("NaN\n", int64(0))
	f.Add("\"1\"\n2,\"a\nb\",\n", int64(time.Second))
	f.Add("1,a,9223372036854775807\n-1,,\n", int64(1))
	f.Fuzz(func(t *testing.T, text string, length int64) {
		l, err := ReadCSV(strings.NewReader(text), Span{Length: max(0, time.Duration(length))})
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q: the error %q is not one line", text, err)
			}
			return
		}
		if len(l.Calls) == 0 || len(l.Calls) > strings.Count(text, "\n")+strings.Count(text, "\r")+1 {
			t.Errorf("%q has %d calls", text, len(l.Calls))
		}
		if !slices.IsSortedFunc(l.Calls, func(a, b Call) int { return int(a.After - b.After) }) {
			t.Errorf("%q gives calls out of order: %v", text, l.Calls)
		}
		for _, c := range l.Calls {
			if c.After < 0 || c.After >= l.Length || c.Key < 0 || c.Key >= len(l.Keys) || c.Cost < 0 {
				t.Errorf("%q of %s: the call %+v", text, l.Length, c)
			}
		}
	})
}
