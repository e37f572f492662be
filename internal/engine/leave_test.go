package engine

import (
	"testing"

	"pgregory.net/rapid"
)

// If all calls that wait give up, in any order, and before the first of their places, they leave nothing.
func TestWaitersThatAllGiveUpLeaveNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{Kind: rapid.SampledFrom([]Kind{TokenBucket, LeakyBucket, Prepaid, SlidingWindow, FixedWindow, Amounts}).Draw(t, "kind"), Per: 60_000}
		c := Claim{Ask: Ask{Rule: &rule, Limit: 6, Burst: 6, Cost: 1}}
		if rule.Kind == LeakyBucket {
			c.Burst = 1
		}
		cell, now := NewCell(&rule), int64(1_000*second)
		cells := []*Cell{&cell}
		room := func() int64 {
			call := Call{Claims: []Claim{c}, Peek: true}
			call.Decide(cells, now+rule.Per/4)
			return call.Claims[0].Earliest
		}
		for {
			call := Call{Claims: []Claim{c}}
			if !call.Decide(cells, now).Admitted {
				break
			}
			now += rapid.SampledFrom([]int64{0, 10, 1000}).Draw(t, "later")
		}
		want := room()
		var waiters []Call
		for range rapid.IntRange(1, 20).Draw(t, "waiters") {
			call := Call{Claims: []Claim{c}}
			call.Claims[0].Wait, call.Claims[0].Cost = 10*rule.Per, 1
			if !call.Decide(cells, now).Admitted {
				t.Fatal("a call did not get a place")
			}
			waiters = append(waiters, call)
		}
		for _, call := range rapid.Permutation(waiters).Draw(t, "order") {
			call.Rollback, call.Claims[0].Delta = true, -call.Claims[0].Charged
			call.Adjust(cells, now)
		}
		if got := room(); got != want || cell.FreePlaces() > 0 {
			t.Fatalf("the next call is admitted at %d; without the others it was at %d; free places: %v", got, want, cell.free())
		}
	})
}

// A bucket that becomes unused when a call gives up keeps no free place.
func TestUnusedBucketHasNoFreePlaces(t *testing.T) {
	rule := Rule{Kind: LeakyBucket, Per: second}
	cell := Cell{full: 60, last: 100, limit: 3, Rare: &Rare{free: &intervals{{at: 5, permits: 1, limit: 3}}}}
	cell.giveBack(&Claim{Ask: Ask{Rule: &rule, Limit: 3, Burst: 1, Cost: 1}, Answer: Answer{At: 100}}, 1, 50, true)
	if cell != (Cell{full: longAgo, last: longAgo, Rare: cell.Rare}) || cell.FreePlaces() > 0 {
		t.Errorf("left are %+v and the free places %v", cell, cell.free())
	}
}
