package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// load is a series of calls under one rule, one in each gap. The calls wait for their places.
type load struct {
	rule         Rule
	limit, burst int64
	most         int64 // the largest cost
	refunds      bool  // a third of the calls is refunded within a period after its place, most of them early in it
}

const (
	gap    = second / 200
	length = 60 * second
)

// caller is one call of a load. It has a place, and may give up the place before its time, or refund its permits afterwards.
type caller struct {
	call  Call
	place int64
	gives int64 // when the call gives up or is refunded; 0 means never
}

// ran is a call that ran and was not refunded.
type ran struct{ at, cost int64 }

// run makes the calls. A third of those that have to wait give up at a random time before their places.
func (l *load) run() (all []ran) {
	random := rand.New(rand.NewPCG(1, uint64(l.rule.Kind)))
	cell := NewCell(&l.rule)
	cells := []*Cell{&cell}
	var waiting []*caller
	start := int64(1_000_000_000)
	for now := start; now < start+length; now += gap {
		waiting = slices.DeleteFunc(waiting, func(w *caller) bool {
			switch {
			case w.gives != 0 && w.gives <= now:
				w.call.Claims[0].Delta, w.call.Rollback = -w.call.Claims[0].Charged, w.gives < w.place
				w.call.Adjust(cells, now)
			case w.gives == 0 && w.place <= now:
				all = append(all, ran{w.place, w.call.Claims[0].Charged})
			default:
				return false
			}
			return true
		})
		if w := l.call(random, cells, now); w != nil {
			waiting = append(waiting, w)
		}
	}
	slices.SortFunc(all, func(a, b ran) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.cost, b.cost)) })
	return all
}

// call makes a call, and returns it if it has a place.
func (l *load) call(random *rand.Rand, cells []*Cell, now int64) *caller {
	cost := 1 + random.Int64N(l.most)
	w := &caller{call: Call{Claims: []Claim{{Ask: Ask{Rule: &l.rule, Cost: cost, Limit: l.limit, Burst: l.burst, Wait: second / 2}}}}}
	v := w.call.Decide(cells, now)
	if !v.Admitted {
		return nil
	}
	w.place = v.At
	switch n := random.IntN(3); {
	case n == 0 && v.At > now+gap:
		w.gives = now + random.Int64N(v.At-now-gap)
	case n == 1 && l.refunds:
		w.gives = v.At + random.Int64N(l.rule.Per)>>random.IntN(8)
	}
	return w
}

// requireWithin fails the test if any span of calls has more permits than the rule allows.
func (l *load) requireWithin(t *testing.T, all []ran) {
	t.Helper()
	for i := range all {
		sum := int64(0)
		for _, last := range all[i:] {
			span, before := last.at-all[i].at, sum
			sum += last.cost
			gained := (span*l.limit + l.rule.Per - 1) / l.rule.Per
			switch l.rule.Kind {
			case SlidingWindow, FixedWindow, Amounts:
				most := l.limit
				if l.rule.Kind == FixedWindow {
					most *= 2
				}
				if span < l.rule.Per && sum > most {
					t.Fatalf("%d permits within %d us", sum, span)
				}
			case Prepaid, Warmup: // the bucket gains the permits of the last call later
				if before > l.burst+gained {
					t.Fatalf("%d permits in the %d us before a call", before, span)
				}
			case TokenBucket, LeakyBucket:
				if sum > l.burst+gained {
					t.Fatalf("%d permits within %d us", sum, span)
				}
			}
			if span > l.rule.Per {
				break
			}
		}
	}
}

// A third of the waiting calls give up while others keep coming. The next callers get their places: at least 95 % of the limit is used, and
// never more than the limit.
func TestPlacesThatAreGivenUpAreUsed(t *testing.T) {
	for name, l := range map[string]load{
		"sliding window": {rule: Rule{Kind: SlidingWindow, Per: second}, limit: 50},
		"fixed window":   {rule: Rule{Kind: FixedWindow, Per: second}, limit: 50},
		"token bucket":   {rule: Rule{Kind: TokenBucket, Per: second}, limit: 50, burst: 10},
		"leaky bucket":   {rule: Rule{Kind: LeakyBucket, Per: second}, limit: 50, burst: 1},
		"amounts":        {rule: Rule{Kind: Amounts, Per: second}, limit: 50},
	} {
		t.Run(name, func(t *testing.T) {
			l.most = 1
			all, given := l.run(), l.limit*length/l.rule.Per
			used := float64(len(all)) / float64(given)
			t.Logf("%d of %d permits used: %.3f", len(all), given, used)
			if used < 0.95 {
				t.Errorf("%.3f of the limit is used", used)
			}
			l.requireWithin(t, all)
		})
	}
}

// Refunds of calls that have run never let more than the limit pass, while other calls wait for their places.
func TestRefundsKeepTheLimit(t *testing.T) {
	for name, l := range map[string]load{
		"sliding window": {rule: Rule{Kind: SlidingWindow, Per: second}, limit: 50, most: 10},
		"fixed window":   {rule: Rule{Kind: FixedWindow, Per: second}, limit: 50, most: 10},
		"token bucket":   {rule: Rule{Kind: TokenBucket, Per: second}, limit: 50, burst: 10, most: 10},
		"leaky bucket":   {rule: Rule{Kind: LeakyBucket, Per: second}, limit: 50, burst: 1, most: 1},
		"prepaid":        {rule: Rule{Kind: Prepaid, Per: second}, limit: 50, burst: 3, most: 10},
		"prepaid, leaky": {rule: Rule{Kind: Prepaid, Per: second}, limit: 50, most: 3},
		"warm-up":        {rule: Rule{Kind: Warmup, Per: second, Warmup: second / 10}, limit: 50, most: 3},
	} {
		t.Run(name, func(t *testing.T) {
			l.refunds = true
			l.requireWithin(t, l.run())
		})
	}
}
