package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Programs with different limits share a bucket, and the limit of each changes; that of a prepaid bucket changes with its burst. Whatever they
// ask and wait for, no span has more permits than the largest burst and what the bucket gains in it at the greatest limit, beside the last call's
// if that may go into debt. Calls also give permits back, in any order.
func TestChangedLimitsOfABucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{Kind: rapid.SampledFrom([]Kind{TokenBucket, LeakyBucket, Prepaid}).Draw(t, "kind"), Per: 1000}
		burst := int64(1)
		if rule.Kind == TokenBucket {
			burst = rapid.Int64Range(1, 8).Draw(t, "burst")
		}
		limits := rapid.SliceOfN(rapid.SampledFrom([]int64{1, 3, 7, 10, 100}), 1, 3).Draw(t, "limits")
		largest := burst
		if rule.Kind == Prepaid {
			largest = slices.Max(limits)
		}
		cell, now := NewCell(&rule), int64(1_000_000*second)
		var taken []Claim
		for range 60 {
			now += rapid.SampledFrom([]int64{0, 0, 1, 10, 99, 300, 2000}).Draw(t, "later")
			if len(taken) > 0 && rapid.IntRange(0, 3).Draw(t, "gives back") == 0 {
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "call")
				back := Call{Claims: []Claim{taken[i]}}
				back.Claims[0].Delta = -taken[i].Charged
				back.Adjust([]*Cell{&cell}, now)
				taken = slices.Delete(taken, i, i+1)
				continue
			}
			c := Claim{Ask: Ask{Rule: &rule, Cost: rapid.Int64Range(1, burst).Draw(t, "cost"), Burst: burst}}
			c.Limit = rapid.SampledFrom(limits).Draw(t, "limit")
			if rule.Kind == Prepaid {
				c.Burst, c.Cost = c.Limit, rapid.Int64Range(1, 4).Draw(t, "cost of a debt")
			}
			c.Wait = rapid.SampledFrom([]int64{0, 0, 500, 5000}).Draw(t, "wait")
			call := Call{Claims: []Claim{c}, Refused: rapid.IntRange(0, 3).Draw(t, "refused") == 0, Peek: rapid.IntRange(0, 5).Draw(t, "peek") == 0}
			if v := call.Decide([]*Cell{&cell}, now); v.Admitted && !call.Peek {
				taken = append(taken, call.Claims[0])
			}
		}
		slices.SortStableFunc(taken, func(a, b Claim) int { return int(a.At - b.At) })
		for i, first := range taken {
			sum := int64(0)
			for _, last := range taken[i:] {
				if rule.Kind != Prepaid {
					sum += last.Charged
				}
				if most := largest + (last.At-first.At+1)*slices.Max(limits)/rule.Per; sum > most {
					t.Fatalf("%d permits from %d to %d, at most %d may be", sum, first.At, last.At, most)
				}
				if rule.Kind == Prepaid {
					sum += last.Charged
				}
			}
		}
	})
}

// While a call waits for its place in a prepaid bucket, a refund lets no call go into debt before that place.
func TestRefundOfADebtWhileACallWaits(t *testing.T) {
	s := newSubject(t, Rule{Kind: Prepaid, Per: second})
	ask := func(cost, wait int64) (Call, Verdict) {
		return s.ask(Claim{Ask: Ask{Cost: cost, Limit: 1, Burst: 5, Wait: wait}})
	}
	debt, _ := ask(6, 0)
	if _, v := ask(1, 9*second); v.At != s.now+second {
		t.Fatalf("the call that waits has its place at %d, want %d", v.At, s.now+second)
	}
	s.giveBack(debt)
	if _, v := ask(8, 0); v.Admitted {
		t.Error("a call goes into debt before the place of a call that waits")
	}
	s.now += second
	if _, v := ask(8, second); !v.Admitted {
		t.Error("a second after the place of the call that waited, none is admitted")
	}
}

// Two calls wait, one of them since before the limit changed. If the earlier one gives up, its permits are not those of the later one.
func TestEarlierPlaceIsNotTheLastAfterAChange(t *testing.T) {
	s := newSubject(t, Rule{Kind: TokenBucket, Per: second})
	fast, slow := Claim{Ask: Ask{Cost: 1, Limit: 7, Burst: 4, Wait: second}}, Claim{Ask: Ask{Cost: 1, Limit: 1, Burst: 4}}
	s.require("a full bucket", s.admits(4, fast), 4)
	fast.Cost = 3
	early, _ := s.ask(fast)
	fast.Cost = 2
	last, _ := s.ask(fast)
	s.ask(slow)
	s.giveBack(last)
	fast.Cost = 1
	late, _ := s.ask(fast)
	s.ask(slow)
	s.giveBack(early)
	fast.Cost = 4
	if _, v := s.ask(fast); v.Admitted && v.At == late.Claims[0].At {
		t.Error("five permits at once of a burst of four")
	}
}

// A place that was given up after a change of the limit is that of its permits: it is not longer at a slower rate.
func TestFreePlaceOfAnotherLimit(t *testing.T) {
	s := newSubject(t, Rule{Kind: TokenBucket, Per: second})
	fast, slow := Claim{Ask: Ask{Cost: 3, Limit: 7, Burst: 4, Wait: second}}, Claim{Ask: Ask{Cost: 1, Limit: 3, Burst: 4, Wait: 9 * second}}
	for _, cost := range []int64{1, 3} {
		now := fast
		now.Cost = cost
		s.require("a full bucket", s.admits(1, now), 1)
	}
	early, v := s.ask(fast)
	s.ask(slow)
	s.giveBack(early)
	slow.Cost = 2
	if _, free := s.ask(slow); free.At < v.At {
		t.Errorf("a call uses the free place at %d, before its time %d", free.At, v.At)
	}
}

// Two calls wait at different limits for the debt of a third to be paid. After both gave up, the debt is what it was.
func TestPlacesInDebtsOfTwoLimits(t *testing.T) {
	for _, kind := range []Kind{Prepaid, Warmup} {
		s := newSubject(t, Rule{Kind: kind, Per: 60_000, Warmup: 2})
		ask := func(cost, limit, wait int64) (Call, Verdict) {
			return s.ask(Claim{Ask: Ask{Cost: cost, Limit: limit, Wait: wait}})
		}
		_, debt := ask(20, 6, 0)
		fast, v := ask(1, 6, 9*second)
		slow, _ := ask(1, 3, 9*second)
		s.giveBack(fast)
		s.giveBack(slow)
		if _, next := ask(1, 6, 9*second); next.At < v.At {
			t.Errorf("%s: a debt of %d us is paid after %d us", kind, v.At-debt.At, next.At-debt.At)
		}
	}
}

// Two programs with different limits and bursts share a prepaid bucket. What is a debt under the smaller burst keeps its time under the larger
// one, too.
func TestDebtOfASmallerBurst(t *testing.T) {
	s := newSubject(t, Rule{Kind: Prepaid, Per: second})
	fast, slow := Claim{Ask: Ask{Cost: 1, Limit: 3, Burst: 3}}, Claim{Ask: Ask{Cost: 1, Limit: 1, Burst: 1}}
	s.require("the burst, and one in debt", s.admits(5, fast), 4)
	s.require("of a bucket in debt", s.admits(1, slow), 0)
	s.require("of the same debt", s.admits(1, fast), 0)
	s.now += second
	s.require("two that are left, and one in debt", s.admits(5, fast), 3)
}
