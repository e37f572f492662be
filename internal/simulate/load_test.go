package simulate

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawLoad draws a load of up to some hundreds of calls.
func drawLoad(t *rapid.T) *Load {
	text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
		"constant:3/s", "constant:7/10ms", "poisson:5/s", "burst:9/2s", "burst:1/1h", "daily:4/s",
	}), 1, 3).Draw(t, "load"), "+")
	span := Span{
		Start:  time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "start"), 0),
		Length: time.Duration(rapid.Int64Range(1, int64(20*time.Second)).Draw(t, "length")),
		Keys:   rapid.IntRange(1, 5).Draw(t, "keys"),
		Seed:   rapid.Uint64().Draw(t, "seed"),
	}
	l, err := NewLoad(text, span)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The calls of a load are sorted, within its time, and have only its keys.
func TestLoadsAreSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLoad(t)
		last := time.Duration(0)
		for _, c := range l.Calls {
			if c.After < last || c.After > l.Length+time.Microsecond || c.Key < 0 || c.Key >= len(l.Keys) || c.After%time.Microsecond != 0 {
				t.Fatalf("%+v comes after %s in a load of %s with %d keys", c, last, l.Length, len(l.Keys))
			}
			last = c.After
		}
	})
}

// The same text and seed give the same load. The number of keys does not change the times of calls.
func TestLoadsAreRepeatable(t *testing.T) {
	span := Span{Length: time.Minute, Seed: 5}
	const text = "poisson:10/s+daily:3/s+poisson:10/s"
	one, again := load(t, text, span), load(t, text, span)
	if !slices.Equal(one.Calls, again.Calls) {
		t.Error("a second load differs")
	}
	span.Keys = 3
	for i, c := range load(t, text, span).Calls {
		if c.After != one.Calls[i].After {
			t.Fatalf("call %d is at %s with three keys, and at %s with one", i, c.After, one.Calls[i].After)
		}
	}
	span.Seed++
	if other := load(t, text, span); len(other.Calls) == len(one.Calls) && other.Calls[0].After == one.Calls[0].After {
		t.Error("another seed gives the same load")
	}
}

func load(t *testing.T, text string, span Span) *Load {
	t.Helper()
	l, err := NewLoad(text, span)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each shape has the requested rate. A random one may be off by six standard deviations.
func TestRates(t *testing.T) {
	for text, length := range map[string]time.Duration{
		"constant:7/s": time.Hour, "poisson:7/s": time.Hour, "burst:70/10s": time.Hour, "daily:7/m": 24 * time.Hour,
	} {
		l := load(t, text, Span{Length: length})
		want := 7 * length.Seconds()
		if strings.HasPrefix(text, "daily") {
			want /= 60
		}
		allowed := 0.0
		if strings.HasPrefix(text, "poisson") || strings.HasPrefix(text, "daily") {
			allowed = 6 * math.Sqrt(want)
		}
		if got := float64(len(l.Calls)); math.Abs(got-want) > allowed {
			t.Errorf("%s has %.0f calls in %s; expected %.0f", text, got, length, want)
		}
	}
}

// A daily load is busiest in the afternoon of its time zone, wherever it starts.
func TestDailyFollowsTheClock(t *testing.T) {
	start := time.Date(2026, 3, 2, 21, 0, 0, 0, time.FixedZone("", 9*3600))
	l := load(t, "daily:60/m", Span{Start: start})
	var calls [24]int
	for _, c := range l.Calls {
		calls[l.Start.Add(c.After).Hour()]++
	}
	for _, hour := range []int{14, 15} {
		if night := calls[hour-12]; calls[hour] < 5*night || night == 0 {
			t.Errorf("%d calls at %d, and %d twelve hours before", calls[hour], hour, night)
		}
	}
}

func TestWrongLoads(t *testing.T) {
	for text, want := range map[string]string{
		"":                            `load is ""; expected constant:100/s`,
		"steady:10/s":                 `load is "steady:10/s"; expected constant:100/s`,
		"constant:1/s+":               `load is ""; expected`,
		"constant":                    `the rate is ""; expected a rate such as 100/s`,
		"constant:10":                 `the rate is "10"; expected`,
		"constant:0/s":                `the rate is "0/s"; expected`,
		"constant:1.5/s":              `the rate is "1.5/s"; expected`,
		"poisson:5/":                  `the rate is "5/"; expected`,
		"poisson:5/fortnight":         `unknown unit "fortnight"`,
		"poisson:5/0s":                `time is "0s"`,
		"constant:1000000/s":          "the load has 600000000 calls; at most 10000000 are possible",
		"burst:9000000000000000/365d": "the load has 9000000000000000 calls",
		"constant:1/s+burst:1/1ns":    "the load has 600000000600 calls",
	} {
		if _, err := NewLoad(text, Span{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v; expected %s", text, err, want)
		}
	}
	for want, span := range map[string]Span{
		"the load has 1000001 keys; at most 1000000": {Keys: math.MaxInt},
		"the load lasts 3661d; at most 3660d":        {Length: 3661 * 24 * time.Hour},
	} {
		if _, err := NewLoad("constant:1/d", span); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; expected %s", err, want)
		}
	}
}
