package simulate

import (
	"slices"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// FuzzCSV checks that a file gives an error of one line, or a load whose calls are sorted, within its length, and have its keys.
func FuzzCSV(f *testing.F) {
	f.Add("timestamp,key,cost\n2026-03-02T09:00:00Z,ann,2\n2026-03-02T08:00:00Z\n", int64(0))
	f.Add("0.000001,a\n1e3,b,7\n8999999999", int64(time.Hour))
	f.Add("NaN\n", int64(0))
	f.Add("\"1\"\n2,\"a\nb\",\n", int64(time.Second))
	f.Add("1,a,9223372036854775807\n-1,,\n", int64(1))
	f.Add("1,a,,,-3\n2,a,,,2026-03-02T09:00:00Z\n3,b\n", int64(0))
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
			if c.After < 0 || c.After >= l.Length || c.Key < 0 || c.Key >= len(l.Keys) || c.Cost < noCost {
				t.Errorf("%q of %s: the call %+v", text, l.Length, c)
			}
		}
	})
}

// FuzzCalls checks that a file gives an error of one line, or a comparison in which nothing differs from itself, and one with other rules that
// counts each call at most once.
func FuzzCalls(f *testing.F) {
	f.Add("timestamp,method,{a},n,when,cost,member\n1,M,ann,3,true,1,x\n2,A.M,bob,-1,false,2,y\n3,N,,,,,\n")
	f.Add("1,a,2,x\n1.5,a,1,y\n")
	f.Add("\"time\nstamp\",timestamp,key\n1,1,1,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		keyed, limited := rule("keyed", ratelimit.Rule{Key: "{a}", Limit: 2}), rule("limited", ratelimit.Rule{Computed: true})
		limited.LimitExpr, keyed.WhenExpr, keyed.CostExpr = "n", "vip", "size"
		for _, before := range [][]Rule{{keyed, limited}, {rule("keyed", ratelimit.Rule{Limit: 1})}} {
			calls, err := ReadCalls(strings.NewReader(text), Span{})
			var c *Comparison
			if err == nil {
				c, err = Compare(t.Context(), before, []Rule{keyed, limited}, calls)
			}
			if err != nil {
				if strings.ContainsAny(err.Error(), "\n\r\x1b") {
					t.Errorf("%q: the error %q is not one line", text, err)
				}
				continue
			}
			if c.Otherwise > c.Calls || len(before) == 2 && c.Otherwise != 0 || int(c.Calls) > strings.Count(text, "\n")+strings.Count(text, "\r")+1 {
				t.Errorf("%q: %+v", text, c)
			}
			var out strings.Builder
			if err := c.PrintTable(&out); err != nil || strings.ContainsAny(out.String(), "\r\x1b") {
				t.Errorf("%q: %v, %q", text, err, out.String())
			}
		}
	})
}
