//go:build !race

package wrap_test

import (
	"context"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// A call from generated code to the limiter allocates nothing.
func TestTakeAllocatesNothing(t *testing.T) {
	l, rules, ctx := ratelimit.New(memstore.New()), wrap.NewRules("p.T.M", bucket), context.Background()
	two := wrap.NewRules("p.T.N", bucket, ratelimit.Rule{Name: "n", Limit: 1_000_000, Per: time.Second})
	observed := ratelimit.New(memstore.New(), ratelimit.WithObserver(func(context.Context, *ratelimit.Event) {}))
	observedRules := wrap.NewRules("p.T.M", bucket)
	one, both, seen := rules.On(l), two.On(l), observedRules.On(observed)
	for what, take := range map[string]func() error{
		"Take":        func() error { return wrap.Take(ctx, one, rules, "k") },
		"two rules":   func() error { return wrap.Take(ctx, both, two, "k", "k") },
		"observed":    func() error { return wrap.Take(ctx, seen, observedRules, "k") },
		"TakeCharges": func() error { return wrap.TakeCharges(ctx, one, rules, wrap.Charge{Key: "k", Cost: 1}) },
	} {
		if n := testing.AllocsPerRun(1000, func() {
			if err := take(); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}

// A function of an expression allocates its result, and nothing else.
func TestFunctionAllocatesNothingButItsResult(t *testing.T) {
	ints, texts, table, n := []int{5, -7, 6}, []string{"a", "b"}, map[string]int{"a": 1}, 5
	above := func(i int) bool { return i > n }
	ok := true
	for what, f := range map[string]struct {
		call func()
		want float64
	}{
		"arithmetic": {func() { n = wrap.Must(wrap.Subtract(wrap.Must(wrap.Add(n, wrap.Must(wrap.Abs(-2)))), 2)) }, 0},
		"amounts":    {func() { n = int(wrap.Must(wrap.RoundUp(float64(n)))) }, 0},
		"sums": {func() {
			ok = wrap.Must(wrap.Sum(ints)) == int(wrap.SumFloatsBy(ints, func(i int) float64 { return float64(i) }))
		}, 0},
		"extremes": {func() { ok = wrap.Must(wrap.Min(ints)) < wrap.Must(wrap.Max(ints)) }, 0},
		"elements": {func() {
			ok = wrap.Must(wrap.At(ints, -1)) == *wrap.Get(ints, 2) && *wrap.First(ints) == *wrap.Last(ints)
		}, 0},
		"parts": {func() { ok = len(wrap.Slice(ints, 1, 9)) == len(wrap.SliceText("abc", -2, 9)) }, 0},
		"all, any": {func() {
			ok = wrap.All(ints, above) || wrap.Any(ints, above) && wrap.One(ints, above) && wrap.None(ints, above)
		}, 0},
		"count":      {func() { ok = wrap.Count(ints, func(i int) bool { return i > n }) == wrap.CountTrue([]bool{ok}) }, 0},
		"find":       {func() { ok = wrap.Find(ints, above) != wrap.FindLast(ints, above) }, 0},
		"find index": {func() { ok = *wrap.FindIndex(ints, above) != *wrap.FindLastIndex(ints, above) }, 0},
		"reduce":     {func() { ok = wrap.Reduce(ints, n, func(acc, i, each int) int { return acc + each - i }) > 5 }, 0},
		"table":      {func() { ok = *wrap.GetKey(table, "a") == 1 && wrap.Has(table, "b") }, 0},
		"no result":  {func() { ok = wrap.Filter(ints, func(int) bool { return false }) == nil }, 0},
		"equal":      {func() { ok = wrap.Equal(3, 3.0) && wrap.Equal("a", "a") }, 0},
		"work":       {func() { var w wrap.Work; ok = len(wrap.ReadText(&w, texts[0])) == len(wrap.ReadMap(&w, table)) }, 0},
		"map":        {func() { ok = wrap.Map(ints, func(i, each int) int { return i * each }) == nil }, 1},
		"keys":       {func() { ok = wrap.Keys(table) == nil }, 1},
		"sort":       {func() { ok = wrap.Must(wrap.Sort(ints, "desc")) == nil }, 1},
		"reverse":    {func() { ok = wrap.Reverse(ints) == nil }, 1},
		"join":       {func() { ok = wrap.Must(wrap.Join(texts, "-")) == "" }, 1},
		"replace":    {func() { ok = wrap.Must(wrap.Replace(texts[0], "a", "-", -1)) == "" }, 1},
		"date":       {func() { ok = wrap.Must(wrap.ParseDate("2026-01-02", time.UTC)).IsZero() }, 0},
	} {
		if n := testing.AllocsPerRun(1000, f.call); n > f.want {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}
