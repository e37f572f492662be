package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// caller is one call of a simulation: it has its place, and may give it up before.
type caller struct {
	call  Call
	place int64
	gives int64 // when it gives up; 0 is never
}

// simulate sends calls that wait, at so many a second, of which a third gives up at a random time before its place. It returns when
// calls ran, and how many permits the rule had to give.
func simulate(rule *Rule, limit, burst, wait, gap, length int64) (ran []int64, given int64) {
	random := rand.New(rand.NewPCG(1, uint64(rule.Kind)))
	cell := NewCell(rule)
	cells := []*Cell{&cell}
	var waiting []*caller
	start := int64(1_000_000_000)
	for now := start; now < start+length; now += gap {
		for _, w := range slices.Clone(waiting) {
			switch {
			case w.gives != 0 && w.gives <= now && w.gives < w.place:
				w.call.Claims[0].Delta, w.call.Rollback = -w.call.Claims[0].Charged, true
				w.call.Adjust(cells, w.gives)
			case w.place <= now:
				ran = append(ran, w.place)
			default:
				continue
			}
			waiting = slices.DeleteFunc(waiting, func(other *caller) bool { return other == w })
		}
		call := Call{Claims: []Claim{{Rule: rule, Cost: 1, Limit: limit, Burst: burst, Wait: wait}}}
		v := call.Decide(cells, now)
		switch {
		case !v.Admitted:
		case v.At == now:
			ran = append(ran, now)
		default:
			w := &caller{call: call, place: v.At}
			if random.IntN(3) == 0 {
				w.gives = now + 1 + random.Int64N(v.At-now)
			}
			waiting = append(waiting, w)
		}
	}
	slices.Sort(ran)
	return ran, limit * length / rule.Per
}

// A third of the waiting calls gives up while others keep coming. What they leave goes to the next callers: at least 95 % of the limit
// is used, and never more than it.
func TestPlacesThatAreGivenUpAreUsed(t *testing.T) {
	const second = 1_000_000
	for name, test := range map[string]struct {
		rule         Rule
		limit, burst int64
	}{
		"sliding window": {Rule{Kind: SlidingWindow, Per: second}, 50, 0},
		"fixed window":   {Rule{Kind: FixedWindow, Per: second}, 50, 0},
		"token bucket":   {Rule{Kind: TokenBucket, Per: second}, 50, 10},
		"leaky bucket":   {Rule{Kind: LeakyBucket, Per: second}, 50, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ran, given := simulate(&test.rule, test.limit, test.burst, second/2, second/200, 60*second)
			used := float64(len(ran)) / float64(given)
			t.Logf("%d of %d permits used: %.3f", len(ran), given, used)
			if used < 0.95 {
				t.Errorf("%.3f of the limit is used", used)
			}
			requireWithin(t, &test.rule, ran, test.limit, test.burst)
		})
	}
}

// requireWithin checks that no span of calls is denser than its rule allows.
func requireWithin(t *testing.T, rule *Rule, ran []int64, limit, burst int64) {
	t.Helper()
	for i := range ran {
		for j := i; j < len(ran); j++ {
			span, n := ran[j]-ran[i], int64(j-i+1)
			switch {
			case rule.Kind == SlidingWindow && span < rule.Per && n > limit,
				rule.Kind == FixedWindow && span < rule.Per && n > 2*limit,
				(rule.Kind == TokenBucket || rule.Kind == LeakyBucket) && n > burst+(span*limit+rule.Per-1)/rule.Per:
				t.Fatalf("%d calls ran within %d us", n, span)
			case span > rule.Per:
				j = len(ran)
			}
		}
	}
}
