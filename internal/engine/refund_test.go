package engine

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// bucketOfCalls is a bucket, and the calls that it admitted and that did not get all their permits back.
type bucketOfCalls struct {
	t     *rapid.T
	rule  Rule
	claim Claim
	cells []*Cell
	now   int64
	calls []Call
}

// Whatever calls wait, give up, use the places that others gave up, and get their permits back, all of them or some: the calls that keep their
// permits are never more than the limit allows.
func TestRefundsOfABucketKeepTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &bucketOfCalls{t: t, now: 1_000_000 * second}
		b.rule = Rule{Kind: rapid.SampledFrom([]Kind{TokenBucket, LeakyBucket, Prepaid, Warmup}).Draw(t, "kind"), Per: 1000, Warmup: 400}
		cell := NewCell(&b.rule)
		b.cells = []*Cell{&cell}
		b.claim = Claim{Ask: Ask{Rule: &b.rule, Limit: rapid.SampledFrom([]int64{1, 3, 7, 10, 100}).Draw(t, "limit")}}
		switch b.rule.Kind {
		case LeakyBucket:
			b.claim.Burst = 1
		case TokenBucket:
			b.claim.Burst = rapid.Int64Range(1, 8).Draw(t, "burst")
		case Prepaid:
			b.claim.Burst = rapid.Int64Range(0, 8).Draw(t, "burst")
		}
		for range 40 {
			b.step()
		}
		b.requireWithin()
	})
}

func (b *bucketOfCalls) step() {
	b.now += rapid.SampledFrom([]int64{0, 0, 1, 10, 100, 300, 1000}).Draw(b.t, "later")
	if len(b.calls) == 0 || rapid.IntRange(0, 2).Draw(b.t, "what") > 0 {
		b.ask()
	} else {
		b.giveBack()
	}
}

func (b *bucketOfCalls) ask() {
	c := b.claim
	most, _ := c.Most()
	c.Cost = rapid.Int64Range(1, min(most, 8)).Draw(b.t, "cost")
	c.Wait = rapid.SampledFrom([]int64{0, 5000, 100_000}).Draw(b.t, "wait")
	call := Call{Claims: []Claim{c}}
	if call.Decide(b.cells, b.now).Admitted {
		b.calls = append(b.calls, call)
	}
}

func (b *bucketOfCalls) giveBack() {
	i := rapid.IntRange(0, len(b.calls)-1).Draw(b.t, "which")
	call := b.calls[i]
	c := call.Claims[0]
	n := rapid.Int64Range(1, c.Charged).Draw(b.t, "permits")
	if c.At > b.now { // only whole places are given up
		n = c.Charged
	}
	call.Claims = []Claim{c}
	call.Claims[0].Delta = -n
	call.Adjust(b.cells, b.now)
	b.calls[i].Claims[0].Charged -= n
	b.calls = slices.DeleteFunc(b.calls, func(call Call) bool { return call.Claims[0].Charged == 0 })
}

// requireWithin fails the test if a span of calls has more permits than the bucket allows. A call of a prepaid bucket pays for those before it.
func (b *bucketOfCalls) requireWithin() {
	c := &b.claim
	slices.SortFunc(b.calls, func(x, y Call) int {
		return cmp.Or(cmp.Compare(x.Claims[0].At, y.Claims[0].At), cmp.Compare(x.Claims[0].Charged, y.Claims[0].Charged))
	})
	for i := range b.calls {
		sum, from := int64(0), b.calls[i].Claims[0].At
		for _, last := range b.calls[i:] {
			before, span := sum, last.Claims[0].At-from
			sum += last.Claims[0].Charged
			counts := sum
			if b.rule.Kind.isPrepaid() {
				counts = before
			}
			if most := c.Burst + (span*c.Limit+b.rule.Per-1)/b.rule.Per; counts > most {
				b.t.Fatalf("%d permits from %d to %d, at most %d may be", counts, from, from+span, most)
			}
		}
	}
}

// The end of a lease is no place. Before it ends, its permits can be given back, but not those that the bucket gains until then.
func TestGiveDuringALease(t *testing.T) {
	rule := &Rule{Kind: TokenBucket, Per: 10 * second, Lease: second}
	cell := NewCell(rule)
	call := Call{Claims: []Claim{{Ask: Ask{Rule: rule, Cost: 1, Limit: 10, Burst: 10}}}, Ahead: 4, Lease: rule.Lease}
	call.Decide([]*Cell{&cell}, 1000*second)
	given := Call{Claims: []Claim{{Ask: call.Claims[0].Ask, Delta: -4}}, Change: Gives}
	given.Adjust([]*Cell{&cell}, 1000*second)
	if room := cell.State(rule).Room(&call.Claims[0], 1000*second); room != 8 {
		t.Errorf("%d are left, want 8", room)
	}
}

// A settlement that a sliding window records at the time of later permits goes back as a whole.
func TestSettlementBeforeManyPermits(t *testing.T) {
	rule := &Rule{Kind: SlidingWindow, Per: 1_000_000}
	cell := NewCell(rule)
	later := Claim{Ask: Ask{Rule: rule, Limit: 1000}}
	for range maxMoved + 1 {
		cell.State(rule).Commit(&later, 1, 100, 200)
	}
	call := Call{Claims: []Claim{{Ask: Ask{Rule: rule, Limit: 1000}, Delta: 5}}}
	before := cell.State(rule).Room(&later, 100)
	for _, call.Claims[0].Delta = range []int64{5, -5} {
		call.Adjust([]*Cell{&cell}, 100)
	}
	if room := cell.State(rule).Room(&later, 100); room != before {
		t.Errorf("%d are left, want %d", room, before)
	}
}
