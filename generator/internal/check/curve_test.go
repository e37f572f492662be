package check

import (
	"cmp"
	"fmt"
	"strconv"
	"testing"
	"time"
	_ "time/tzdata" // the zones below, also where the system has no zone files

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

func window(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.Rule{Limit: limit, Per: per}
}

func with(r ratelimit.Rule, algorithm ratelimit.Algorithm, burst int64) ratelimit.Rule {
	r.Algorithm, r.Burst = algorithm, burst
	return r
}

func TestFollows(t *testing.T) {
	const (
		fixed, bucket, leaky, counter = ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.LeakyBucket, ratelimit.SlidingCounter
		min, hour                     = time.Minute, time.Hour
	)
	cron := func(limit int64, text string) ratelimit.Rule {
		return ratelimit.Rule{Limit: limit, Cron: text, TZ: "UTC"}
	}
	daily := func(limit int64, tz string) ratelimit.Rule {
		return ratelimit.Rule{Limit: limit, Cron: "@daily", TZ: tz}
	}
	prepaid := with(window(10, min), bucket, 0)
	prepaid.Prepay = true
	for name, c := range map[string]struct {
		loose, strict ratelimit.Rule
		want          bool
	}{
		"the minute of an hour":                 {window(10, min), window(5, hour), true},
		"the same limit for longer":             {window(5, min), window(5, hour), true},
		"an hour of minutes":                    {window(600, hour), window(10, min), true},
		"an hour of minutes, less one":          {window(599, hour), window(10, min), false},
		"the hour of a minute":                  {window(10, hour), window(5, min), false},
		"a looser minute":                       {window(5, min), window(10, hour), false},
		"a fixed hour has two minutes' worth":   {window(9, min), with(window(5, hour), fixed, 0), false},
		"twice a fixed hour":                    {window(10, min), with(window(5, hour), fixed, 0), true},
		"a fixed minute in an hour":             {with(window(5, min), fixed, 0), window(5, hour), true},
		"fixed windows do not begin together":   {with(window(5, min), fixed, 0), with(window(5, hour), fixed, 0), false},
		"a bucket of a rate and a burst":        {window(14, min), with(window(10, min), bucket, 5), true},
		"a bucket of more":                      {window(13, min), with(window(10, min), bucket, 5), false},
		"a bucket beside a window":              {with(window(10, min), bucket, 5), window(5, min), true},
		"a bucket that is smaller":              {with(window(10, min), bucket, 4), window(5, min), false},
		"a bucket that is slower":               {with(window(4, min), bucket, 5), window(5, min), false},
		"two buckets":                           {with(window(10, min), bucket, 5), with(window(9, min), bucket, 5), true},
		"two bursts":                            {with(window(10, min), bucket, 5), with(window(9, min), bucket, 6), false},
		"a bucket beside a fixed window":        {with(window(10, min), bucket, 9), with(window(5, min), fixed, 0), false},
		"a bucket beside twice a fixed window":  {with(window(10, min), bucket, 10), with(window(5, min), fixed, 0), true},
		"evenly spaced":                         {with(window(10, min), leaky, 0), with(window(9, min), leaky, 0), true},
		"evenly spaced against a burst":         {with(window(10, min), leaky, 0), window(2, hour), false},
		"evenly spaced against one at a time":   {with(window(10, min), leaky, 0), window(1, min), true},
		"a counter keeps to its limit":          {window(5, min), with(window(5, min), counter, 0), true},
		"a counter is late by a slice":          {with(window(5, min), counter, 0), window(5, min), false},
		"a counter is not late by more":         {with(window(5, min), counter, 0), window(5, 61*time.Second), true},
		"the same day":                          {daily(10, "UTC"), daily(5, "UTC"), true},
		"the same day, looser":                  {daily(5, "UTC"), daily(10, "UTC"), false},
		"the same day, spelled differently":     {daily(10, ""), cron(5, "0 0 0 * * ?"), true},
		"an hour of a day":                      {cron(10, "@hourly"), daily(10, "UTC"), true},
		"an hour of a day, looser":              {cron(10, "@hourly"), daily(11, "UTC"), false},
		"the day of an hour":                    {daily(10, "UTC"), cron(5, "@hourly"), false},
		"hours that cut a day in two":           {cron(10, "30 * * * *"), daily(5, "UTC"), false},
		"the same day, on weekdays":             {daily(10, "UTC"), cron(5, "0 0 * * 1-5"), true},
		"days elsewhere":                        {daily(10, "UTC"), daily(5, "Asia/Tokyo"), false},
		"a day of hours, as long as any":        {daily(36, "Europe/Berlin"), window(1, hour), true},
		"a day is not always 24 hours":          {daily(35, "Europe/Berlin"), window(1, hour), false},
		"a week of hours":                       {cron(1000, "@weekly"), window(1, hour), false},
		"an hour of minutes, as long as any":    {cron(120, "@hourly"), window(1, min), true},
		"an hour is not always 60 minutes":      {cron(119, "@hourly"), window(1, min), false},
		"the ends of two days":                  {window(10, 12*hour), daily(5, "Europe/Berlin"), true},
		"the ends of two days, looser":          {window(9, min), daily(5, "Europe/Berlin"), false},
		"three days may meet":                   {window(14, 13*hour), daily(5, "Europe/Berlin"), false},
		"hours may be short":                    {window(1000, min), cron(5, "@hourly"), false},
		"a bucket beside a day":                 {with(window(120, 24*hour), bucket, 10), daily(5, "UTC"), true},
		"a bucket as slow as a day":             {with(window(5, 24*hour), bucket, 10), daily(5, "UTC"), true},
		"a bucket that is slower than a day":    {with(window(4, 24*hour), bucket, 10), daily(5, "UTC"), false},
		"a bucket as slow as a day of 24 hours": {with(window(9, 24*hour), bucket, 10), daily(5, "Europe/Berlin"), false},
		"the ends of two days of UTC":           {window(10, 24*hour), daily(5, "UTC"), true},
		"the ends of days that may be short":    {window(10, 24*hour), daily(5, "Europe/Berlin"), false},
		"a day of UTC has 24 hours":             {daily(24, "UTC"), window(1, hour), true},
		"what may go into debt is not compared": {window(1000, min), prepaid, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := follows(c.loose, c.strict); got != c.want {
				t.Errorf("follows is %t, expected %t", got, c.want)
			}
		})
	}
}

// TestFollowsHolds looks for a call that a rule refuses alone, although it is said to follow from the other one. It has the
// smallest limit of which that is said.
func TestFollowsHolds(t *testing.T) {
	pairs := 0
	for range 10 { // each is a hundred pairs
		rapid.Check(t, func(t *rapid.T) {
			loose, strict := draw(t, "loose"), draw(t, "strict")
			if loose.Limit = least(loose, strict); loose.Limit == 0 {
				return
			}
			pairs++
			walk(t, time.Unix(1_800_000_000, 0), ratelimit.Request{Rule: loose}, ratelimit.Request{Rule: strict})
		})
	}
	if pairs == 0 {
		t.Error("no two rules were compared")
	}
}

// least returns the smallest limit of loose at which it follows from strict; 0 if there is none.
func least(loose, strict ratelimit.Rule) int64 {
	for loose.Limit = 1; loose.Limit < 300; loose.Limit++ {
		if follows(loose, strict) {
			return loose.Limit
		}
	}
	return 0
}

// TestImpliesHolds does the same with rules that cost more, block, or count members.
func TestImpliesHolds(t *testing.T) {
	pairs := map[string]int{}
	for range 10 {
		rapid.Check(t, func(t *rapid.T) {
			loose, strict := draw(t, "loose"), draw(t, "strict")
			cost := rapid.Int64Range(1, 4)
			looser := ratelimit.Request{Cost: cost.Draw(t, "loose costs")}
			stricter := ratelimit.Request{Cost: cost.Draw(t, "strict costs")}
			if capacity(strict, strict.Limit) < stricter.Cost {
				stricter.Cost = 1
			}
			if rapid.Bool().Draw(t, "block") {
				loose.Block = time.Duration(rapid.Int64Range(1, 60).Draw(t, "blocks")) * time.Second
			}
			if loose.Algorithm == ratelimit.SlidingWindow && rapid.Bool().Draw(t, "members") {
				loose.Distinct, looser.Cost = "{m}", 1
			}
			a := &analysis{}
			for loose.Limit = 1; capacity(loose, loose.Limit) < looser.Cost || !a.implies(ruled(strict, stricter.Cost), ruled(loose, looser.Cost)); loose.Limit++ {
				if loose.Limit == 300 {
					return
				}
			}
			pairs[fmt.Sprint(loose.Block > 0, loose.Distinct != "", looser.Cost != stricter.Cost)]++
			looser.Rule, stricter.Rule = loose, strict
			walk(t, time.Unix(1_800_000_000, 0), looser, stricter)
		})
	}
	if len(pairs) < 8 {
		t.Errorf("pairs were compared of these kinds alone: %v", pairs)
	}
}

// ruled returns a rule as it is collected, of calls that cost as much.
func ruled(r ratelimit.Rule, cost int64) *model.Rule {
	const pos = 1
	return &model.Rule{Limit: r, Rule: annotations.Rule{
		Limit: annotations.Amount{Pos: pos, Int: r.Limit}, Cost: annotations.Amount{Pos: pos, Int: cost},
	}}
}

// TestFollowsHoldsOfCalendars does the same with calendar windows, of one rule or both, in weeks in which clocks are changed or years end.
func TestFollowsHoldsOfCalendars(t *testing.T) {
	pairs, mixed := 0, 0
	for range 5 {
		rapid.Check(t, func(t *rapid.T) {
			loose, strict := drawCalendars(t)
			switch rapid.IntRange(0, 5).Draw(t, "one without a calendar") {
			case 0:
				loose = draw(t, "loose")
				loose.Per *= 3 * 3600
				loose.Limit = least(loose, strict)
			case 1:
				strict = draw(t, "strict")
				strict.Per *= 3600
				loose.Limit = least(loose, strict)
			}
			if !follows(loose, strict) {
				return
			}
			pairs++
			if loose.Cron == "" || strict.Cron == "" {
				mixed++
			}
			month := rapid.SampledFrom([]time.Month{time.March, time.April, time.October, time.November, time.December}).Draw(t, "month")
			walk(t, time.Date(2026, month, rapid.IntRange(1, 31).Draw(t, "day"), 0, 0, 0, 0, time.UTC), ratelimit.Request{Rule: loose}, ratelimit.Request{Rule: strict})
		})
	}
	if pairs < 50 || mixed < 10 {
		t.Errorf("only %d pairs of rules were compared, and %d with one calendar", pairs, mixed)
	}
}

// drawCalendars returns two rules of one zone. The fields of loose's expression often have the values of strict's.
func drawCalendars(t *rapid.T) (loose, strict ratelimit.Rule) {
	zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}).Draw(t, "zone")
	limit := rapid.Int64Range(1, 4)
	strict = ratelimit.Rule{Name: "strict", Limit: limit.Draw(t, "strict"), TZ: zone}
	loose = ratelimit.Rule{Name: "loose", Limit: strict.Limit + limit.Draw(t, "more") - 1, TZ: zone}
	for i, values := range [][]string{
		{"0", "*/20", "0,15,30,45", "*"}, {"0", "1", "2", "*/2", "*", "*", "1-3"}, {"*", "?", "1", "*/2", "1-31"}, {"*", "*/3", "10"}, {"*", "0", "1-5", "SUN"},
	} {
		value := rapid.SampledFrom(values)
		field := value.Draw(t, "strict")
		looser := rapid.SampledFrom([]string{"*", field, field, field + "," + value.Draw(t, "too"), value.Draw(t, "loose")}).Draw(t, "loose")
		if i > 0 {
			field, looser = " "+field, " "+looser
		}
		strict.Cron, loose.Cron = strict.Cron+field, loose.Cron+looser
	}
	return loose, strict
}

// walk makes calls from now on, with pauses that end about where windows do.
func walk(t *rapid.T, now time.Time, looser, stricter ratelimit.Request) {
	loose, strict := looser.Rule, stricter.Rule
	looser.Member = "0"
	limiter := ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { return now })))
	pauses := []time.Duration{
		time.Microsecond, time.Second, strict.Per / 2, strict.Per - time.Microsecond, strict.Per, loose.Per - time.Microsecond, 3 * loose.Per,
	}
	if loose.Cron != "" || strict.Cron != "" {
		pauses = []time.Duration{time.Microsecond, time.Second, time.Minute, 7 * time.Minute, time.Hour, 5 * time.Hour, 24 * time.Hour}
	}
	for _, step := range rapid.SliceOfN(rapid.IntRange(-len(pauses), len(pauses)-1), 50, 200).Draw(t, "steps") {
		switch {
		case step == 0 && strict.Cron+loose.Cron != "":
			now = lastOf(t, cmp.Or(strict.Cron, loose.Cron), strict.TZ, now)
		case step >= 0:
			now = now.Add(pauses[step])
		case step%2 == 0:
			for allow(t, limiter, looser, stricter) {
			}
		default:
			looser.Member = strconv.Itoa(step)
			allow(t, limiter, looser, stricter)
		}
	}
}

// lastOf returns the end of the calendar window that is open at a time.
func lastOf(t *rapid.T, cron, zone string, now time.Time) time.Time {
	ends, err := ratelimit.Rule{Limit: 1, Cron: cron, TZ: zone}.Boundaries(now.Add(time.Microsecond), 1)
	if err != nil || len(ends) == 0 {
		t.Fatal(ends, err)
	}
	return ends[0].Add(-time.Microsecond)
}

// allow makes a call, and reports whether both rules admit it.
func allow(t *rapid.T, limiter *ratelimit.Limiter, loose, strict ratelimit.Request) bool {
	if loose.Rule.Distinct == "" {
		loose.Member = ""
	}
	d, err := limiter.Allow(t.Context(), loose, strict)
	if err != nil {
		t.Fatalf("%+v beside %+v: %v", loose, strict, err)
	}
	if len(d.Violations) == 1 && d.Violations[0].Rule == loose.Rule.Name {
		t.Fatalf("%+v refuses what %+v admits", loose, strict)
	}
	return d.Allowed
}

func draw(t *rapid.T, name string) ratelimit.Rule {
	r := ratelimit.Rule{Name: name, Limit: rapid.Int64Range(1, 8).Draw(t, "limit")}
	r.Algorithm = rapid.SampledFrom([]ratelimit.Algorithm{
		ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.LeakyBucket, ratelimit.SlidingCounter,
	}).Draw(t, "algorithm")
	r.Per = time.Duration(rapid.Int64Range(1, 20).Draw(t, "per")) * time.Second
	switch r.Algorithm {
	case ratelimit.TokenBucket:
		r.Burst = rapid.Int64Range(0, 12).Draw(t, "burst")
	case ratelimit.SlidingCounter:
		r.Slices = rapid.Int64Range(1, 8).Draw(t, "slices")
	}
	return r
}
