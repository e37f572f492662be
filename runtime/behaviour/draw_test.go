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
	// limits are mostly small, so that calls reach them. Some have intervals between permits that are not whole microseconds.
	limits = rapid.OneOf(rapid.Int64Range(1, 8), rapid.Int64Range(1, 8), rapid.SampledFrom([]int64{30, 997, 1000}))

	// few are the limits for sliding windows. With more than 64 permits of waiting calls, a sliding window records a charge at a later time.
	few = rapid.OneOf(rapid.Int64Range(1, 8), rapid.Int64Range(1, 8), rapid.SampledFrom([]int64{30, 61}))

	periods = rapid.SampledFrom([]time.Duration{
		time.Millisecond, 10 * time.Millisecond, 333_333 * time.Microsecond, time.Second, 1_000_003 * time.Microsecond,
		time.Minute, time.Hour, 24 * time.Hour,
	})
	crons  = rapid.SampledFrom(slices.Sorted(maps.Keys(calendars)))
	scopes = rapid.SampledFrom([]ratelimit.Scope{ratelimit.ScopeFleet, ratelimit.ScopeFleet, ratelimit.ScopeInstance})
)

func drawLimit(t *rapid.T, r ratelimit.Rule) int64 {
	if r.Algorithm == ratelimit.SlidingWindow {
		return few.Draw(t, "limit")
	}
	return limits.Draw(t, "limit")
}

// anyRule draws rules without names.
var anyRule = rapid.Custom(func(t *rapid.T) ratelimit.Rule {
	r := ratelimit.Rule{
		Algorithm: rapid.SampledFrom(append(ratelimit.Algorithms(), ratelimit.TokenBucket)).Draw(t, "algorithm"), // token buckets are drawn more often, because they have three forms
		Scope:     scopes.Draw(t, "scope"),
		Refund:    ratelimit.Refund(rapid.IntRange(0, 1).Draw(t, "refund")),
	}
	r.Limit = drawLimit(t, r)
	if r.Algorithm != ratelimit.Calendar {
		r.Per = periods.Draw(t, "per")
	}
	switch r.Algorithm {
	case ratelimit.Calendar:
		cron := crons.Draw(t, "cron")
		zone := strings.LastIndexByte(cron, ' ')
		r.Cron, r.TZ, r.Distinct = cron[:zone], cron[zone+1:], drawDistinct(t)
		if every, ok := strings.CutPrefix(r.Cron, "every "); ok {
			r.Cron, r.Every = "", every
		}
	case ratelimit.SlidingWindow:
		r.Distinct = drawDistinct(t)
		r.Amounts = r.Distinct == "" && rapid.Bool().Draw(t, "amounts")
	case ratelimit.SlidingCounter:
		r.Slices = rapid.SampledFrom([]int64{0, 1, 2, 3, 7, 200}).Draw(t, "slices")
	case ratelimit.Concurrency:
		r.Per, r.Refund = max(r.Per, 3*time.Second), ratelimit.RefundNever
	case ratelimit.LeakyBucket:
		r.Prepay = rapid.Bool().Draw(t, "prepay")
	case ratelimit.TokenBucket:
		drawBucket(t, &r)
	}
	drawRefusal(t, &r)
	return r
})

func drawDistinct(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "{who}"}).Draw(t, "distinct")
}

func drawBucket(t *rapid.T, r *ratelimit.Rule) {
	switch rapid.IntRange(0, 3).Draw(t, "bucket") {
	case 0:
		r.Warmup = min(periods.Draw(t, "warmup"), 24*time.Hour)
	case 1:
		r.Prepay = true
		fallthrough
	default:
		r.Burst = rapid.Int64Range(0, 10).Draw(t, "burst")
	}
}

// drawRefusal draws what happens after a refusal, among the arguments that go with the rule.
func drawRefusal(t *rapid.T, r *ratelimit.Rule) {
	plain := *r
	switch n := rapid.IntRange(0, 11).Draw(t, "refusal"); {
	case n == 0:
		r.Mode = ratelimit.ModeShadow
	case n == 1:
		r.Mode = ratelimit.ModeTrigger
		if overruns(*r) {
			r.Scope = ratelimit.ScopeFleet // rules of this scope are decided last, so that nothing is given back
		}
	case n < 4:
		r.Block = periods.Draw(t, "block")
		r.BlockMax = r.Block * time.Duration(rapid.SampledFrom([]int{0, 0, 2, 3, 8}).Draw(t, "longest block"))
	case n < 9:
		r.Wait = periods.Draw(t, "wait") * time.Duration(rapid.IntRange(1, 3).Draw(t, "times"))
		if countsRunning(*r) {
			r.Wait = 0
		}
		waits := *r
		if r.Queue = rapid.Int64Range(0, 10).Draw(t, "queue"); r.Validate() != nil {
			*r = waits
		}
	}
	if r.Validate() != nil {
		*r = plain
	}
}

// drawAsks asks for some of the rules, in a random order.
func (w *walk) drawAsks() []ask {
	n := rapid.IntRange(1, len(w.rules)).Draw(w.t, "requests")
	var asks []ask
	for _, r := range rapid.Permutation(w.rules).Draw(w.t, "order")[:n] {
		q := ask{rule: r, cost: 1}
		q.key = rapid.SampledFrom([]string{"a", "a", "a", "b", ""}).Draw(w.t, "key")
		if r.Distinct != "" {
			q.member = rapid.SampledFrom([]string{"x", "y", "z", "ü", "somebody", "a member with a name of many letters"}).Draw(w.t, "member")
		} else {
			q.cost = w.drawCost(r)
		}
		asks = append(asks, q)
	}
	return asks
}

func requestsOf(asks []ask) []ratelimit.Request {
	requests := make([]ratelimit.Request, len(asks))
	for i, q := range asks {
		requests[i] = ratelimit.Request{Rule: q.rule, Key: q.key, Cost: max(q.cost, 1), Member: q.member, Anchor: anchorOf(q.rule)}
	}
	return requests
}

func (w *walk) drawCost(r ratelimit.Rule) int64 {
	law := lawOf(r)
	most := law.most()
	usual := min(most, max(r.Limit, 10))
	return rapid.OneOf(
		rapid.Just[int64](1),
		rapid.Just[int64](1),
		rapid.Int64Range(1, max(usual/3, 1)),
		rapid.Int64Range(1, usual),
		rapid.SampledFrom([]int64{0, 1, 1, 1, usual, usual, most + 1}),
	).Draw(w.t, "cost")
}

// drawPause draws how long to pause: not at all, a microsecond, a retry delay or a microsecond less, until a call's place, about a part of a
// window, or for a long time.
func (w *walk) drawPause() time.Duration {
	part := rapid.SampledFrom(w.rules).Draw(w.t, "window").Per / time.Duration(rapid.IntRange(1, 8).Draw(w.t, "part"))
	place := w.retry
	if len(w.waiting) > 0 {
		place = micros(w.waiting[0].due() - time.Now().UnixMicro())
	}
	return rapid.OneOf(
		rapid.Just[time.Duration](0),
		rapid.Just[time.Duration](0),
		rapid.Just(time.Microsecond),
		rapid.Just(w.retry),
		rapid.Just(max(w.retry-time.Microsecond, 0)),
		rapid.Just(place),
		rapid.Just(max(place-time.Microsecond, 0)),
		rapid.Just(place/2),
		rapid.Just(part.Truncate(time.Microsecond)),
		rapid.Just(part.Truncate(time.Microsecond)+time.Microsecond),
		rapid.Map(rapid.Int64Range(0, 2_000_000), micros),
		rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour, 40 * 24 * time.Hour}),
	).Draw(w.t, "pause").Truncate(time.Microsecond)
}

func describe(asks []ask) string {
	var b strings.Builder
	for _, q := range asks {
		fmt.Fprintf(&b, "[%d of %s %s limit %d burst %d key %q", q.cost, q.rule.Name, lawOf(q.rule).window(), q.rule.Limit, q.rule.Burst, q.key)
		for _, extra := range []struct {
			is   bool
			what any
		}{
			{q.rule.Prepay, "prepay"}, {q.rule.Mode != 0, q.rule.Mode}, {q.rule.Scope != 0, q.rule.Scope},
			{q.rule.Block != 0, "block " + q.rule.Block.String()}, {q.member != "", "member " + q.member},
			{q.wait != 0, fmt.Sprintf("wait %d", q.wait)}, {q.rule.Queue != 0, fmt.Sprintf("queue %d", q.rule.Queue)},
		} {
			if extra.is {
				fmt.Fprint(&b, " ", extra.what)
			}
		}
		b.WriteString("]")
	}
	return b.String()
}
