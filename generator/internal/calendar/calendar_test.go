package calendar_test

import (
	"fmt"
	"testing"
	"time"
	_ "time/tzdata" // the zones below, also where the system has no zone files

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/generator/internal/calendar"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func rule(cron, zone string) ratelimit.Rule { return ratelimit.Rule{Limit: 1, Cron: cron, TZ: zone} }

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		inner, outer   string
		within, around bool // around: outer lies in inner
	}{
		{"@daily", "0 0 * * *", true, true},
		{"@daily", "0 0 0 ? * *", true, true},
		{"@midnight", "0 0 0 1-31 jan-dec *", true, true},
		{"0 0 * * MON", "0 0 * * mon", true, true},
		{"0  0 * * 0-6", "@daily", true, true},
		{"@hourly", "@daily", true, false},
		{"*/5 * * * *", "*/10 * * * *", true, false},
		{"*/10 * * * *", "*/15 * * * *", false, false},
		{"@daily", "@weekly", true, false},
		{"@daily", "@monthly", true, false},
		{"@weekly", "@monthly", false, false},
		{"@monthly", "@yearly", true, false},
		{"30 0 * * *", "@daily", false, false},
		{"0 9,18 * * *", "0 9 * * *", true, false},
		{"0 0 1,15 * *", "0 0 1 * *", true, false},
		{"0 0 1 * *", "0 0 1 * 1", false, true},   // the first, or any Monday
		{"0 0 ? * 1", "0 0 1 * 1", false, true},   // any Monday
		{"0 0 */2 * 1", "0 0 * * 1", true, false}, // a star with a step is none
		{"0 0 31 * *", "0 0 31 1,3,5,7,8,10,12 *", true, true},
		{"0 0 1 1 *", "0 0 29 2 *", false, false},
	} {
		a, b := rule(c.inner, ""), rule(c.outer, "UTC")
		if got := calendar.Within(a, b); got != c.within {
			t.Errorf("%q within %q: %t, expected %t", c.inner, c.outer, got, c.within)
		}
		if got := calendar.Within(b, a); got != c.around {
			t.Errorf("%q within %q: %t, expected %t", c.outer, c.inner, got, c.around)
		}
		if got := calendar.Same(a, b); got != (c.within && c.around) {
			t.Errorf("%q the same as %q: %t", c.inner, c.outer, got)
		}
	}
}

func TestWithinOfOthers(t *testing.T) {
	daily := rule("@daily", "")
	for name, other := range map[string]ratelimit.Rule{
		"another zone":           rule("@daily", "Asia/Tokyo"),
		"no calendar":            {Limit: 1, Per: 24 * time.Hour},
		"what is not valid":      rule("@fortnightly", ""),
		"a zone that is unknown": rule("@daily", "Mars/Olympus"),
	} {
		if calendar.Within(daily, other) || calendar.Within(other, daily) {
			t.Errorf("%s: the windows are compared", name)
		}
	}
}

// TestWithinHolds looks for an end of a window that is in the midst of one that is said to be within it, around the days on
// which clocks change.
func TestWithinHolds(t *testing.T) {
	pairs := 0
	for range 4 { // each is a hundred pairs
		rapid.Check(t, func(t *rapid.T) {
			zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"}).Draw(t, "zone")
			outer, inner := draw(t)
			coarse, fine := rule(outer, zone), rule(inner, zone)
			if coarse.Validate() != nil || fine.Validate() != nil || !calendar.Within(fine, coarse) {
				return
			}
			pairs++
			from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 366*24).Draw(t, "hour")) * time.Hour)
			for _, end := range ends(t, coarse, from, 5) {
				if ends := ends(t, fine, end.Add(-time.Microsecond), 1); !ends[0].Equal(end) {
					t.Fatalf("%q in %s: a window ends at %s, and one of %q at %s", outer, zone, end, inner, ends[0])
				}
			}
		})
	}
	if pairs < 20 {
		t.Errorf("only %d pairs were compared", pairs)
	}
}

func TestLengths(t *testing.T) {
	const day, change = 24 * time.Hour, 12 * time.Hour
	for _, c := range []struct {
		cron              string
		shortest, longest time.Duration // 0 is unknown
	}{
		{"@daily", day - change, day + change},
		{"30 2 * * *", day - change, day + change},
		{"0 0 1-31 * 1", day - change, day + change},
		{"0 9,18 * * *", 0, day + change},
		{"*/30 * * * * *", 0, 2 * time.Hour},
		{"@hourly", 0, 2 * time.Hour},
		{"0 0 * * 1-5", day - change, 0},
		{"@weekly", day - change, 0},
		{"0 * 1 * *", 0, 0},
	} {
		r := rule(c.cron, "Europe/Berlin")
		if got, ok := calendar.Shortest(r); ok != (c.shortest > 0) || ok && got != c.shortest {
			t.Errorf("%q: at least %s, %t", c.cron, got, ok)
		}
		longest, ok := calendar.Longest(r)
		if ok != (c.longest > 0) || ok && longest != c.longest {
			t.Errorf("%q: at most %s, %t", c.cron, longest, ok)
		}
		bounds, err := r.Boundaries(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 400)
		if err != nil {
			t.Fatal(err)
		}
		for i, end := range bounds[1:] {
			if length := end.Sub(bounds[i]); length < c.shortest || c.longest > 0 && length > c.longest {
				t.Errorf("%q: a window of %s until %s", c.cron, length, end)
			}
		}
	}
}

func ends(t *rapid.T, r ratelimit.Rule, from time.Time, n int) []time.Time {
	ends, err := r.Boundaries(from, n)
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

// draw returns two cron expressions. The fields of the second one often have the values of the first one's.
func draw(t *rapid.T) (outer, inner string) {
	for i, field := range []struct{ low, high int }{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}} {
		value := func() string {
			low := rapid.IntRange(field.low, field.high).Draw(t, "low")
			high := rapid.IntRange(low, field.high).Draw(t, "high")
			step := rapid.IntRange(1, 4).Draw(t, "step")
			return rapid.SampledFrom([]string{
				"*", "*", fmt.Sprint(field.low), fmt.Sprintf("*/%d", step), fmt.Sprint(low), fmt.Sprintf("%d-%d/%d", low, high, step),
			}).Draw(t, "value")
		}
		first := value()
		second := rapid.SampledFrom([]string{"*", first, first, first + "," + value(), value()}).Draw(t, "second")
		if i > 0 {
			first, second = " "+first, " "+second
		}
		outer, inner = outer+first, inner+second
	}
	return outer, inner
}
