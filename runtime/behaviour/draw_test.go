package behaviour_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

var (
	// limits are small mostly, so that they are met, and some that do not divide a microsecond evenly.
	limits = rapid.OneOf(rapid.Int64Range(1, 8), rapid.Int64Range(1, 8), rapid.SampledFrom([]int64{30, 997, 1000}))

	memoryPlans = plans(rapid.SampledFrom([]time.Duration{
		time.Millisecond, 10 * time.Millisecond, 333_333 * time.Microsecond, time.Second, 1_000_003 * time.Microsecond,
		time.Minute, time.Hour, 24 * time.Hour,
	}), slices.Sorted(maps.Keys(calendars)))

	redisPlans = plans(
		rapid.Map(rapid.IntRange(5_000, 200_000), func(n int) time.Duration { return micros(int64(n)) }),
		[]string{"* * * * * * ", "0 0 0 * * * Asia/Shanghai"})
)

// plans draws rules without names.
func plans(periods *rapid.Generator[time.Duration], crons []string) *rapid.Generator[ratelimit.Rule] {
	return rapid.Custom(func(t *rapid.T) ratelimit.Rule {
		algorithm := rapid.SampledFrom([]ratelimit.Algorithm{
			ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.Calendar,
		}).Draw(t, "algorithm")
		r := ratelimit.Rule{Algorithm: algorithm, Limit: limits.Draw(t, "limit")}
		switch algorithm {
		case ratelimit.Calendar:
			cron := rapid.SampledFrom(crons).Draw(t, "cron")
			zone := strings.LastIndexByte(cron, ' ')
			r.Cron, r.TZ = cron[:zone], cron[zone+1:]
			return r
		case ratelimit.TokenBucket:
			r.Burst = rapid.Int64Range(0, 10).Draw(t, "burst")
		}
		r.Per = periods.Draw(t, "per")
		return r
	})
}

// drawRequests asks for some of the rules, in a random order.
func (w *walk) drawRequests() []ratelimit.Request {
	n := rapid.IntRange(1, len(w.rules)).Draw(w.t, "requests")
	requests := make([]ratelimit.Request, n)
	for i, r := range rapid.Permutation(w.rules).Draw(w.t, "order")[:n] {
		key := rapid.SampledFrom([]string{"a", "a", "a", "b", ""}).Draw(w.t, "key") + w.suffix
		requests[i] = ratelimit.Request{Rule: r, Key: key, Cost: w.drawCost(r)}
	}
	return requests
}

func (w *walk) drawCost(r ratelimit.Rule) int64 {
	most := lawOf(r).most()
	return rapid.OneOf(
		rapid.Just[int64](1),
		rapid.Just[int64](1),
		rapid.Int64Range(1, max(most/3, 1)),
		rapid.Int64Range(1, most),
		rapid.SampledFrom([]int64{1, 1, 1, most, most, most + 1}),
	).Draw(w.t, "cost")
}

// drawPause is for a clock that obeys: nothing, a microsecond, a retry delay and a microsecond less, parts of a window and
// a microsecond around them, long idling.
func (w *walk) drawPause() time.Duration {
	part := rapid.SampledFrom(w.rules).Draw(w.t, "window").Per / time.Duration(rapid.IntRange(1, 8).Draw(w.t, "part"))
	return rapid.OneOf(
		rapid.Just[time.Duration](0),
		rapid.Just[time.Duration](0),
		rapid.Just(time.Microsecond),
		rapid.Just(w.retry),
		rapid.Just(max(w.retry-time.Microsecond, 0)),
		rapid.Just(part.Truncate(time.Microsecond)),
		rapid.Just(part.Truncate(time.Microsecond)+time.Microsecond),
		rapid.Map(rapid.Int64Range(0, 2_000_000), micros),
		rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour, 40 * 24 * time.Hour}),
	).Draw(w.t, "pause")
}

// drawSleep is for real time: mostly nothing, else up to 30 ms.
func (w *walk) drawSleep() time.Duration {
	return rapid.OneOf(
		rapid.Just[time.Duration](0),
		rapid.Just[time.Duration](0),
		rapid.Just[time.Duration](0),
		rapid.Just(min(w.retry, 30*time.Millisecond)),
		rapid.Map(rapid.Int64Range(0, 2_000), micros),
		rapid.Map(rapid.Int64Range(0, 30_000), micros),
	).Draw(w.t, "sleep")
}

func describe(requests []ratelimit.Request) string {
	var b strings.Builder
	for _, q := range requests {
		fmt.Fprintf(&b, "[%d of %s %s limit %d burst %d key %q]", q.Cost,
			q.Rule.Name, lawOf(q.Rule).window(), q.Rule.Limit, q.Rule.Burst, q.Key)
	}
	return b.String()
}
