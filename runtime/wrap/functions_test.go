package wrap_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// given are the random values that expressions name.
type given struct {
	Ints       []int
	Floats     []float64
	Texts      []string
	Bools      []bool
	Table      map[string]int
	Dates      []time.Time
	N, M       int
	F          float64
	Text, Part string
	Order      string
	Day        string
	Zone       *time.Location
	ZoneName   string
	V          any
}

func draw(t *rapid.T) given {
	n := rapid.IntRange(-4, 9)
	text := rapid.StringMatching(`[ab1é]{0,5}|-?[0-9]{1,3}|[0-9].[0-9]|[ab]{2}==?`)
	f := rapid.Map(n, func(n int) float64 { return float64(n) / 4 })
	const few = 11 // expr's sorting keeps the order of equal elements of so short a list
	basic := rapid.OneOf(rapid.Map(n, toAny), rapid.Map(f, toAny), rapid.Map(text, toAny), rapid.Map(rapid.Bool(), toAny),
		rapid.Map(rapid.Int64Range(-4, 4), toAny), rapid.Map(rapid.Uint8Range(0, 9), toAny), rapid.Map(rapid.Float32Range(-2, 2), toAny))
	date := func(n int) time.Time { return time.Date(2026, 1, 2, 3, 4, n, 0, time.UTC) }
	zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Nowhere/Land"}).Draw(t, "zone")
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	return given{
		Ints: rapid.SliceOfN(n, 0, few).Draw(t, "ints"), Floats: rapid.SliceOfN(f, 0, few).Draw(t, "floats"),
		Texts: rapid.SliceOfN(text, 0, few).Draw(t, "texts"), Bools: rapid.SliceOf(rapid.Bool()).Draw(t, "bools"),
		Table: rapid.MapOf(text, n).Draw(t, "table"), Dates: rapid.SliceOfN(rapid.Map(n, date), 0, few).Draw(t, "dates"),
		N: n.Draw(t, "n"), M: n.Draw(t, "m"), F: f.Draw(t, "f"), Text: text.Draw(t, "text"), Part: text.Draw(t, "part"),
		Order: rapid.SampledFrom([]string{"asc", "desc", "up"}).Draw(t, "order"),
		Day: rapid.SampledFrom([]string{
			"2026-01-02", "15:04:05", "2026-01-02 15:04:05", "2026-01-02T15:04:05+02:00", "02 Jan 26 15:04 MST", "Friday, 02-Jan-26 15:04:05 UTC",
			"Fri, 02 Jan 2026 15:04:05 UTC", "2026-13-02", "", "2.1.2026",
		}).Draw(t, "day"), Zone: location, ZoneName: zone,
		V: rapid.OneOf(basic, rapid.Map(rapid.SliceOf(basic), toAny), rapid.Map(rapid.MapOf(text, basic), toAny)).Draw(t, "v"),
	}
}

func toAny[T any](v T) any { return v }

// functions are expressions, and what they become in Go.
var functions = map[string]func(g given) (any, error){
	`N % M`:          func(g given) (any, error) { return of(wrap.Remainder(g.N, g.M)) },
	`-N`:             func(g given) (any, error) { return of(wrap.Negate(g.N)) },
	`abs(N)`:         func(g given) (any, error) { return of(wrap.Abs(g.N)) },
	`int(F)`:         func(g given) (any, error) { return of(wrap.Truncate(g.F)) },
	`bitshl(N, M)`:   func(g given) (any, error) { return of(wrap.ShiftLeft(g.N, g.M)) },
	`bitshr(N, M)`:   func(g given) (any, error) { return of(wrap.ShiftRight(g.N, g.M)) },
	`bitushr(N, M)`:  func(g given) (any, error) { return of(wrap.ShiftRightUnsigned(g.N, g.M)) },
	`sum(Ints)`:      func(g given) (any, error) { return of(wrap.Sum(g.Ints)) },
	`sum(Ints, N-#)`: func(g given) (any, error) { return of(wrap.SumBy(g.Ints, func(i int) int { return g.N - i })) },
	`sum(Floats)`:    func(g given) (any, error) { return wrap.SumFloats(g.Floats), nil },
	`sum(Ints, F*#)`: func(g given) (any, error) {
		return wrap.SumFloatsBy(g.Ints, func(i int) float64 { return g.F * float64(i) }), nil
	},
	`mean(Floats)`: func(g given) (any, error) { return wrap.Mean(g.Floats), nil },
	`median(Ints)`: func(g given) (any, error) {
		return wrap.Median(wrap.Map(g.Ints, func(_, n int) float64 { return float64(n) })), nil
	},
	`min(concat(Ints, [N]))`:   func(g given) (any, error) { return of(wrap.Min(append(g.Ints, g.N))) },
	`max(concat(Floats, [F]))`: func(g given) (any, error) { return of(wrap.Max(append(g.Floats, g.F))) },

	`Ints[N]`:                    func(g given) (any, error) { return of(wrap.At(g.Ints, g.N)) },
	`get(Ints, N)`:               func(g given) (any, error) { return wrap.Get(g.Ints, g.N), nil },
	`first(Texts)`:               func(g given) (any, error) { return wrap.First(g.Texts), nil },
	`last(Texts)`:                func(g given) (any, error) { return wrap.Last(g.Texts), nil },
	`Ints[N:M]`:                  func(g given) (any, error) { return wrap.Slice(g.Ints, g.N, g.M), nil },
	`Ints[N:]`:                   func(g given) (any, error) { return wrap.Slice(g.Ints, g.N, math.MaxInt), nil },
	`Text[N:M]`:                  func(g given) (any, error) { return wrap.SliceText(g.Text, g.N, g.M), nil },
	`Text[:M]`:                   func(g given) (any, error) { return wrap.SliceText(g.Text, 0, g.M), nil },
	`take(Ints, N)`:              func(g given) (any, error) { return of(wrap.FirstN(g.Ints, g.N)) },
	`reverse(Texts)`:             func(g given) (any, error) { return wrap.Reverse(g.Texts), nil },
	`uniq(Ints)`:                 func(g given) (any, error) { return wrap.Uniq(g.Ints), nil },
	`sort(Texts)`:                func(g given) (any, error) { return of(wrap.Sort(g.Texts, "asc")) },
	`sort(Ints, Order)`:          func(g given) (any, error) { return of(wrap.Sort(g.Ints, g.Order)) },
	`sortBy(Ints, # % 3, Order)`: func(g given) (any, error) { return of(wrap.SortBy(g.Ints, func(i int) int { return i % 3 }, g.Order)) },
	`sortBy(Dates, #, Order)`: func(g given) (any, error) {
		return of(wrap.SortByTime(g.Dates, func(d time.Time) time.Time { return d }, g.Order))
	},
	`all(Ints, # > N)`:                       func(g given) (any, error) { return wrap.All(g.Ints, g.above), nil },
	`any(Ints, # > N)`:                       func(g given) (any, error) { return wrap.Any(g.Ints, g.above), nil },
	`none(Ints, # > N)`:                      func(g given) (any, error) { return wrap.None(g.Ints, g.above), nil },
	`one(Ints, # > N)`:                       func(g given) (any, error) { return wrap.One(g.Ints, g.above), nil },
	`count(Ints, # > N)`:                     func(g given) (any, error) { return wrap.Count(g.Ints, g.above), nil },
	`count(Bools)`:                           func(g given) (any, error) { return wrap.CountTrue(g.Bools), nil },
	`filter(Ints, # > N)`:                    func(g given) (any, error) { return wrap.Filter(g.Ints, g.above), nil },
	`find(Ints, # > N)`:                      func(g given) (any, error) { return wrap.Find(g.Ints, g.above), nil },
	`findLast(Ints, # > N)`:                  func(g given) (any, error) { return wrap.FindLast(g.Ints, g.above), nil },
	`findIndex(Ints, # > N)`:                 func(g given) (any, error) { return wrap.FindIndex(g.Ints, g.above), nil },
	`findLastIndex(Ints, # > N)`:             func(g given) (any, error) { return wrap.FindLastIndex(g.Ints, g.above), nil },
	`map(Ints, # - #index)`:                  func(g given) (any, error) { return wrap.Map(g.Ints, func(i, each int) int { return each - i }), nil },
	`reduce(Ints, 2 * #acc + # - #index, N)`: func(g given) (any, error) { return wrap.Reduce(g.Ints, g.N, step), nil },
	`reduce(Ints, 2 * #acc + # - #index)`:    func(g given) (any, error) { return of(wrap.ReduceList(g.Ints, step)) },
	`groupBy(Texts, len(#))`:                 func(g given) (any, error) { return wrap.GroupBy(g.Texts, utf8.RuneCountInString), nil },
	`N..M`:                                   func(g given) (any, error) { return of(wrap.Range(g.N, g.M)) },

	`get(Table, Text)`:          func(g given) (any, error) { return wrap.GetKey(g.Table, g.Text), nil },
	`Text in Table`:             func(g given) (any, error) { return wrap.Has(g.Table, g.Text), nil },
	`sort(keys(Table))`:         func(g given) (any, error) { return of(wrap.Sort(wrap.Keys(g.Table), "asc")) },
	`sort(values(Table))`:       func(g given) (any, error) { return of(wrap.Sort(wrap.Values(g.Table), "asc")) },
	`fromPairs(toPairs(Table))`: func(g given) (any, error) { return of(wrap.FromPairs(wrap.ToPairs(g.Table))) },
	`fromPairs([Ints, [N, M]])`: func(g given) (any, error) { return of(wrap.FromPairs([][]int{g.Ints, {g.N, g.M}})) },

	`replace(Text, Part, "xy")`:  func(g given) (any, error) { return of(wrap.Replace(g.Text, g.Part, "xy", -1)) },
	`replace(Text, "", Part, N)`: func(g given) (any, error) { return of(wrap.Replace(g.Text, "", g.Part, g.N)) },
	`join(Texts, Part)`:          func(g given) (any, error) { return of(wrap.Join(g.Texts, g.Part)) },
	`repeat(Text, N)`:            func(g given) (any, error) { return of(wrap.Repeat(g.Text, g.N)) },
	`toBase64(Text)`:             func(g given) (any, error) { return wrap.ToBase64(g.Text), nil },
	`fromBase64(Text)`:           func(g given) (any, error) { return of(wrap.FromBase64(g.Text)) },

	`date(Day)`:       func(g given) (any, error) { return of(wrap.ParseDate(g.Day, nil)) },
	`date(Zone, Day)`: func(g given) (any, error) { return of(wrap.ParseDate(g.Day, g.Zone)) },

	`string(V)`:      func(g given) (any, error) { return of(wrap.StringOf(g.V)) },
	`int(V)`:         func(g given) (any, error) { return of(wrap.IntOf(g.V)) },
	`float(V)`:       func(g given) (any, error) { return of(wrap.FloatOf(g.V)) },
	`V == N`:         func(g given) (any, error) { return wrap.Equal(g.V, g.N), nil },
	`V == F`:         func(g given) (any, error) { return wrap.Equal(g.V, g.F), nil },
	`V == Text`:      func(g given) (any, error) { return wrap.Equal(g.V, g.Text), nil },
	`V == true`:      func(g given) (any, error) { return wrap.Equal(g.V, true), nil },
	`toJSON(V)`:      func(g given) (any, error) { return of(wrap.ToJSON(g.V)) },
	`fromJSON(Text)`: func(g given) (any, error) { return of(wrap.FromJSON(g.Text)) },
}

func of[T any](v T, err error) (any, error) { return v, err }

func (g given) above(i int) bool { return i > g.N }

func step(acc, i, each int) int { return 2*acc + each - i }

// TestFunctionsLikeExpr compares each function with the one of expr: both give the same value, or both an error.
func TestFunctionsLikeExpr(t *testing.T) {
	for _, source := range slices.Sorted(maps.Keys(functions)) {
		t.Run(source, rapid.MakeCheck(func(t *rapid.T) {
			g := draw(t)
			before := canonical(g)
			program, err := expr.Compile(source, expr.Env(g))
			if err != nil {
				t.Fatal(err)
			}
			want, wrong := vm.Run(program, g)
			got, err := functions[source](g)
			if (err == nil) != (wrong == nil) {
				t.Fatalf("got %v, error %v; expr gives %v, error %v", got, err, want, wrong)
			}
			if err == nil && canonical(got) != canonical(want) {
				t.Fatalf("got %s; expr gives %s", canonical(got), canonical(want))
			}
			if after := canonical(g); after != before {
				t.Fatalf("the arguments become %s", after)
			}
		}))
	}
}

// canonical returns a text that is the same for values that differ only in their types.
func canonical(v any) string {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Map { // JSON does not have keys of type any
		all := map[string]any{}
		for key, value := range r.Seq2() {
			all[fmt.Sprint(key.Interface())] = value.Interface()
		}
		v = all
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestSortByIsStable sorts a list that is too long for a simple algorithm. Elements with the same key keep their order.
func TestSortByIsStable(t *testing.T) {
	list := wrap.Map(make([]int, 1000), func(i, _ int) int { return i })
	for _, order := range []string{"asc", "desc"} {
		sorted, err := wrap.SortBy(list, func(i int) int { return i % 3 }, order)
		if err != nil || !slices.IsSortedFunc(sorted, func(a, b int) int {
			if a%3 == b%3 {
				return a - b
			}
			return (a%3 - b%3) * map[string]int{"asc": 1, "desc": -1}[order]
		}) {
			t.Errorf("%s: %v, error %v", order, sorted, err)
		}
	}
}
