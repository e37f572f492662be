package wrap_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// FuzzTexts makes texts of up to a few times MaxText: each is what package strings makes, or an error if it is too large.
func FuzzTexts(f *testing.F) {
	f.Add("a", "a", "ab", 40_000, 30_000, -1)
	f.Add("ab", "", "é", 3, 5, 2)
	f.Add("-", "-", "", 65_537, 1, -1)
	f.Add("ab", "b", "", 32_768, 70_000, 1)
	f.Add("", "", "", 0, math.MaxInt, 0)
	f.Add("a", "a", "a", 30_000, 1, 1)
	f.Add("a", "", "a", wrap.MaxText/4, 1, 1)
	f.Add("ab", "x", "", 0, wrap.MaxText/2, 0)
	f.Fuzz(func(t *testing.T, text, old, new string, times, count, n int) {
		if len(text) > 8 || len(new) > 8 {
			return
		}
		few := int(uint(times) % (1 << 17))
		long, longer := strings.Repeat(text, few), strings.Repeat(new, few)
		check := func(what, got string, err error, size int64, want func() string) {
			if fits := size <= wrap.MaxText; fits != (err == nil) || fits && got != want() {
				t.Fatalf("%s: %d bytes, error %v; expected %d bytes", what, len(got), err, size)
			}
		}
		found := strings.Count(long, old)
		if n >= 0 {
			found = min(found, n)
		}
		replaced, err := wrap.Replace(long, old, longer, n)
		check("Replace", replaced, err, int64(len(long))+max(0, int64(found)*int64(len(longer)-len(old))), func() string { return strings.Replace(long, old, longer, n) })
		joined, err := wrap.Join([]string{long, old, long}, longer)
		check("Join", joined, err, int64(2*len(long)+len(old)+2*len(longer)), func() string { return strings.Join([]string{long, old, long}, longer) })
		copies := min(max(count, -1), 1<<20)
		repeated, err := wrap.Repeat(text, count)
		if count < 0 {
			if err == nil {
				t.Fatalf("Repeat: %d times %q is %q", count, text, repeated)
			}
			return
		}
		check("Repeat", repeated, err, int64(len(text)*copies), func() string { return strings.Repeat(text, count) })
	})
}

// TestReplaceOfLargeTexts refuses a text that is too large even if the result were small.
func TestReplaceOfLargeTexts(t *testing.T) {
	if got, err := wrap.Replace(strings.Repeat("a", wrap.MaxText+1), "a", "", -1); err == nil {
		t.Errorf("got %q", got)
	}
}

// TestErrorsOfFunctions checks the errors that name what was found. A caller's text is quoted.
func TestErrorsOfFunctions(t *testing.T) {
	for want, err := range map[string]error{
		"found index 3 in a list of 2 elements":                                                          second(wrap.At([]int{1, 2}, 3)),
		"found index -3 in a list of 2 elements":                                                         second(wrap.At([]int{1, 2}, -3)),
		"found a count of -1; expected 0 or more":                                                        second(wrap.FirstN([]int{1}, -1)),
		`found the order "up\n"; expected asc or desc`:                                                   second(wrap.Sort([]int{1}, "up\n")),
		"found an empty list; expected at least one element":                                             second(wrap.ReduceList(nil, step)),
		"found a pair of 1 elements; expected 2":                                                         second(wrap.FromPairs([][]int{{1}})),
		"found the range 1..65537; expected at most 65536 integers":                                      second(wrap.Range(1, 65537)),
		fmt.Sprintf("found the range %d..%d; expected at most 65536 integers", math.MinInt, math.MaxInt): second(wrap.Range(math.MinInt, math.MaxInt)),
		`found "2\n"; expected a date such as 2006-01-02 or 2006-01-02T15:04:05Z`:                        second(wrap.ParseDate("2\n", nil)),
		"found a shift by -1 bits; expected 0 or more":                                                   second(wrap.ShiftLeft(1, -1)),
		"found a string of over 65536 bytes":                                                             second(wrap.FromJSON(strings.Repeat("[", wrap.MaxText+1))),
		"128 does not fit int8":                                                                          second(wrap.To[int8](128)),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if list, err := wrap.Range(1, wrap.MaxList); err != nil || len(list) != wrap.MaxList || list[wrap.MaxList-1] != wrap.MaxList {
		t.Errorf("%d integers, error %v", len(list), err)
	}
	if _, err := wrap.Min([]int{}); err == nil {
		t.Error("min of an empty list is no error")
	}
	if _, err := wrap.Max([]float64{}); err == nil {
		t.Error("max of an empty list is no error")
	}
	if nan, err := wrap.Min([]float64{1, math.NaN(), -1}); err != nil || !math.IsNaN(nan) {
		t.Errorf("the smallest of numbers with NaN is %v, error %v", nan, err)
	}
}

func second[T any](_ T, err error) error { return err }

// FuzzWork reads a text, a list and a map of random sizes: they stay as they are, and the evaluation ends exactly if there are more than 2^20
// steps.
func FuzzWork(f *testing.F) {
	f.Add(uint(1<<20-1), uint(0), uint(0))
	f.Add(uint(1<<20-3), uint(0), uint(0))
	f.Add(uint(5), uint(1<<20-9), uint(1))
	f.Add(uint(5), uint(1<<20-9), uint(0))
	f.Fuzz(func(t *testing.T, a, b, c uint) {
		var w wrap.Work
		table := map[uint]bool{}
		for i := range c % 100 {
			table[i] = true
		}
		a, b = a%(1<<21), b%(1<<21)
		total := uint(0)
		for n, read := range map[uint]func() int{
			a:                func() int { return len(wrap.ReadText(&w, strings.Repeat("a", int(a)))) },
			b:                func() int { return len(wrap.ReadList(&w, make([]struct{}, b))) },
			uint(len(table)): func() int { return len(wrap.ReadMap(&w, table)) },
		} {
			total += 1 + n
			got, err := wrap.Value(wrap.NewRules("p.T.M", bucket), "x", read)
			if fits := total <= 1<<20; fits != (err == nil) || fits && got != int(n) {
				t.Fatalf("after %d steps: error %v, read %d of %d", total, err, got, n)
			}
			if err != nil {
				if e, ok := errors.AsType[*ratelimit.KeyError](err); !ok || e.Err.Error() != "the expression has too much to do for these values" {
					t.Fatal(err)
				}
				return
			}
		}
	})
}

// TestTextsOfManyCopies checks that a text is refused before it is made, if a list holds another text many times.
func TestTextsOfManyCopies(t *testing.T) {
	text := strings.Repeat("a", wrap.MaxText)
	copies := wrap.Map(make([]int, 3000), func(int, int) string { return text })
	pointers := wrap.Map(copies, func(i int, _ string) *string { return &copies[i] })
	nested := []any{1}
	for range 60 {
		nested = []any{nested, nested}
	}
	for what, f := range map[string]func() (string, error){
		"toJSON(copies)":   func() (string, error) { return wrap.ToJSON(copies) },
		"toJSON(pointers)": func() (string, error) { return wrap.ToJSON(pointers) },
		"string(copies)":   func() (string, error) { return wrap.StringOf(copies) },
		"join(copies)":     func() (string, error) { return wrap.Join(copies, "") },
		"toJSON(nested)":   func() (string, error) { return wrap.ToJSON(nested) },
		"string(nested)":   func() (string, error) { return wrap.StringOf(nested) },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := f()
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > 8<<20 {
			t.Errorf("%s takes %d bytes, error %v", what, used, err)
		}
	}
}
