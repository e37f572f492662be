package engine

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const second = 1_000_000

// subject is the state of one subject under one rule, at a time that the test sets.
type subject struct {
	t    *testing.T
	rule Rule
	cell Cell
	now  int64
}

func newSubject(t *testing.T, rule Rule) *subject {
	return &subject{t: t, rule: rule, cell: NewCell(&rule), now: 1_000_000 * second}
}

// ask decides a call of one claim.
func (s *subject) ask(c Claim) (Call, Verdict) {
	c.Rule = &s.rule
	call := Call{Claims: []Claim{c}}
	return call, call.Decide([]*Cell{&s.cell}, s.now)
}

// admits returns how many of n equal calls are admitted now.
func (s *subject) admits(n int, c Claim) (admitted int) {
	for range n {
		if _, v := s.ask(c); v.Admitted {
			admitted++
		}
	}
	return admitted
}

func (s *subject) giveBack(call Call) {
	call.Claims[0].Delta = -call.Claims[0].Charged
	call.Adjust([]*Cell{&s.cell}, s.now)
}

func (s *subject) require(what string, got, want int) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: %d calls are admitted, want %d", what, got, want)
	}
}

// A change of a bucket's rate leaves the number of missing permits as it is. The new rate applies from the first ask on, even if that is
// refused.
func TestChangedRateKeepsWhatIsMissing(t *testing.T) {
	s := newSubject(t, Rule{Kind: TokenBucket, Per: second})
	fast, slow := Claim{Ask: Ask{Cost: 1, Limit: 10, Burst: 50}}, Claim{Ask: Ask{Cost: 1, Limit: 2, Burst: 50}}
	s.require("a full bucket", s.admits(100, fast), 50)
	s.now += second / 2
	s.require("idle before the first ask at a lower rate", s.admits(100, slow), 1)
	s.now += 2 * second
	s.require("after two seconds at two a second", s.admits(100, slow), 4)
	s.now += second / 4
	s.require("with half a permit, asked at the higher rate", s.admits(1, fast), 0)
	s.now += second/20 - 1
	s.require("a microsecond too early", s.admits(1, fast), 0)
	s.now++
	s.require("with half a permit more", s.admits(2, fast), 1)
}

// A peek at another limit shows what an ask would find, and changes nothing.
func TestPeekAtAnotherRate(t *testing.T) {
	s := newSubject(t, Rule{Kind: TokenBucket, Per: second})
	fast, slow := Claim{Ask: Ask{Cost: 1, Limit: 10, Burst: 50}}, Claim{Ask: Ask{Cost: 1, Limit: 1, Burst: 50}}
	s.require("a full bucket", s.admits(100, fast), 50)
	s.now += 5 * second
	peek := Call{Claims: []Claim{slow}, Peek: true}
	peek.Claims[0].Rule = &s.rule
	before := s.cell
	peek.Decide([]*Cell{&s.cell}, s.now)
	if room, full := peek.Claims[0].Room, peek.Claims[0].Full-s.now; room != 5 || full != 45*second || s.cell != before {
		t.Errorf("a room of %d permits, full after %d us, the state is %v, was %v", room, full, s.cell, before)
	}
	s.require("at the old rate after a peek", s.admits(100, fast), 50)
}

// While calls wait, a raised limit counts from the last place on: the old and the new rate do not add up. A lowered one does not move the
// places.
func TestChangedRateWhileCallsWait(t *testing.T) {
	for _, c := range []struct{ limit, other, next int64 }{{20, 40, second / 40}, {40, 20, second / 20}} {
		s := newSubject(t, Rule{Kind: LeakyBucket, Per: second})
		claim := Claim{Ask: Ask{Cost: 1, Limit: c.limit, Burst: 1, Wait: 60 * second}}
		var last int64
		for range 11 {
			_, v := s.ask(claim)
			last = v.At
		}
		for i := range int64(3) {
			s.now += second / 100
			claim.Limit = c.other
			if _, v := s.ask(claim); v.At-last != (i+1)*c.next {
				t.Errorf("from %d to %d a second, call %d: admitted %d us after the last place", c.limit, c.other, i, v.At-last)
			}
			claim.Limit = c.limit
			claim.Wait = 0
			s.ask(claim) // programs with both limits ask
			claim.Wait = 60 * second
		}
	}
}

// What calls give back late is theirs as far as the bucket could not have been full without them.
func TestLateRefundsOfABucket(t *testing.T) {
	s := newSubject(t, Rule{Kind: TokenBucket, Per: second})
	claim := Claim{Ask: Ask{Cost: 1, Limit: 10, Burst: 50}}
	var calls []Call
	for range 16 {
		call, _ := s.ask(claim)
		calls = append(calls, call)
	}
	s.now += second / 20
	for _, call := range calls {
		s.giveBack(call)
	}
	s.require("nobody took one", s.admits(100, claim), 50)

	for _, patient := range []bool{false, true} {
		s = newSubject(t, Rule{Kind: TokenBucket, Per: second})
		five, others := Claim{Ask: Ask{Cost: 5, Limit: 5, Burst: 5}}, Claim{Ask: Ask{Cost: 1, Limit: 5, Burst: 5}}
		call, _ := s.ask(five)
		if patient {
			others.Wait = second
		} else {
			s.now += 2 * second / 5
		}
		s.require("others take two", s.admits(2, others), 2)
		before := s.cell
		s.giveBack(call)
		if after := s.cell; before.full-after.full != 3*second/5 {
			t.Errorf("patient %t: %d us of 600,000 come back", patient, before.full-after.full)
		}
	}
}

// A change of the rate does not change how long a debt lasts.
func TestChangedRateKeepsDebts(t *testing.T) {
	s := newSubject(t, Rule{Kind: Prepaid, Per: second})
	s.ask(Claim{Ask: Ask{Cost: 30, Limit: 10}})
	c, _ := s.ask(Claim{Ask: Ask{Cost: 1, Limit: 1}})
	if wait := c.Claims[0].Earliest - s.now; wait != 3*second {
		t.Errorf("a debt of 3 s lasts %d us at another rate", wait)
	}
}

// A late refund gives back only the permits that have not refilled since.
func TestLateRefundKeepsTheBurst(t *testing.T) {
	s := newSubject(t, Rule{Kind: TokenBucket, Per: second})
	five, one := Claim{Ask: Ask{Cost: 5, Limit: 5, Burst: 5}}, Claim{Ask: Ask{Cost: 1, Limit: 5, Burst: 5}}
	first, _ := s.ask(five)
	s.now += second
	s.require("refilled", s.admits(6, one), 5)
	s.giveBack(first)
	s.require("after the refund of what has refilled", s.admits(6, one), 0)
	s.now += 2 * second
	again, _ := s.ask(five)
	s.now += second / 5
	s.giveBack(again)
	s.require("after an early refund", s.admits(6, one), 5)
}

// After the clock was set back over a boundary, calls still count in the window that was opened.
func TestCalendarAfterTheClockWentBack(t *testing.T) {
	every := NewSchedule(func(at time.Time) time.Time { return at.Truncate(time.Minute).Add(time.Minute) }, true, time.UTC)
	s := newSubject(t, Rule{Kind: Calendar, Schedule: every})
	c := Claim{Ask: Ask{Cost: 1, Limit: 3}}
	boundary := (s.now/(60*second) + 1) * 60 * second
	s.now = boundary - 5
	s.require("before the boundary", s.admits(5, c), 3)
	s.now = boundary + 5
	s.require("after it", s.admits(5, c), 3)
	s.now = boundary - 3
	s.require("before it once more", s.admits(5, c), 0)
	s.now = boundary + 6
	s.require("after it once more", s.admits(5, c), 0)
}

// A trigger over a sliding counter fires exactly with the charges that raise the count to its limit. The count is that of the algorithm: it
// includes the slice that is only partly in the window. So whenever the window has as many permits as the limit, the trigger has fired since
// the count was last below the limit.
func TestTriggerOfASlidingCounter(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rule := Rule{Kind: SlidingCounter, Per: 6 * second, Slices: rapid.SampledFrom([]int64{1, 2, 3, 7, 60}).Draw(r, "slices")}
		s := newSubject(t, rule)
		type charge struct{ at, n int64 }
		var charges []charge
		sum := func(counts func(at int64) bool) (n int64) {
			for _, c := range charges {
				if counts(c.at) {
					n += c.n
				}
			}
			return n
		}
		const limit = 5
		fired := false
		for range 60 {
			s.now += rapid.SampledFrom([]int64{0, 1, second / 3, second, 2 * second, 7 * second}).Draw(r, "later")
			oldest := rule.slice(s.now) - rule.Slices
			count := sum(func(at int64) bool { return rule.slice(at) >= oldest })
			fired = fired && count >= limit
			cost := rapid.Int64Range(1, 4).Draw(r, "cost")
			call, _ := s.ask(Claim{Ask: Ask{Cost: cost, Limit: limit, Mode: Trigger}})
			charges = append(charges, charge{s.now, cost})
			want := int64(0)
			if count < limit && count+cost >= limit {
				want, fired = count+cost, true
			}
			if got := call.Claims[0].Fired; got != want {
				r.Fatalf("a charge of %d after %d fires with %d, want %d", cost, count, got, want)
			}
			if exact := sum(func(at int64) bool { return at > s.now-rule.Per }); exact >= limit && !fired {
				r.Fatalf("the window has %d permits, and the trigger has not fired", exact)
			}
		}
	})
}

// A settlement leaves at most the limit in a sliding window. With more permits in it, no later call would be admitted.
func TestSettleBeyondTheLimit(t *testing.T) {
	for _, test := range []struct {
		rule Rule
		wait int64 // from the settlement until the next permit is free
	}{
		{Rule{Kind: SlidingWindow, Per: second}, second},
		{Rule{Kind: FixedWindow, Per: second}, second},
		{Rule{Kind: TokenBucket, Per: second}, 9*second/5 + second/5}, // 1+9 permits at five a second, of which one suffices
		{Rule{Kind: SlidingCounter, Per: second, Slices: 1}, 2 * second},
	} {
		s := newSubject(t, test.rule)
		call, _ := s.ask(Claim{Ask: Ask{Cost: 1, Limit: 5, Burst: 1}})
		call.Claims[0].Delta = 9
		call.Adjust([]*Cell{&s.cell}, s.now)
		refused, _ := s.ask(Claim{Ask: Ask{Cost: 1, Limit: 5, Burst: 1}})
		if wait := refused.Claims[0].Earliest - s.now; wait != test.wait {
			t.Errorf("kind %d: a permit comes after %d us, want %d", test.rule.Kind, wait, test.wait)
		}
	}
}

// An UpTo call takes as many permits as every rule has, and at most its cost.
func TestUpTo(t *testing.T) {
	log, window := Rule{Name: "log", Kind: SlidingWindow, Per: second}, Rule{Name: "window", Kind: FixedWindow, Per: second}
	first, other := NewCell(&log), NewCell(&window)
	ask := func(cost int64) (Call, Verdict) {
		call := Call{UpTo: true, Claims: []Claim{{Ask: Ask{Rule: &log, Cost: cost, Limit: 10}}, {Ask: Ask{Rule: &window, Cost: cost, Limit: 7}}}}
		return call, call.Decide([]*Cell{&first, &other}, 1000*second)
	}
	for _, want := range []int64{5, 2} {
		if call, v := ask(5); !v.Admitted || v.Taken != want || call.Claims[0].Charged != want || call.Claims[1].Charged != want {
			t.Errorf("took %+v by %+v, want %d", call.Claims, v, want)
		}
	}
	if _, v := ask(5); v.Admitted || v.Taken != 0 {
		t.Errorf("took %+v of an empty window", v)
	}
}

// A bucket keeps a place only for the time at which it would itself admit the call. If another rule delays the call further, it asks again.
func TestNoPlaceAheadInABucket(t *testing.T) {
	log, shared := Rule{Name: "log", Kind: SlidingWindow, Per: 60 * second}, Rule{Name: "shared", Kind: TokenBucket, Per: second}
	first, other := NewCell(&log), NewCell(&shared)
	call := Call{Claims: []Claim{
		{Ask: Ask{Rule: &log, Cost: 1, Limit: 1, Wait: 100 * second}}, {Ask: Ask{Rule: &shared, Cost: 1, Limit: 10, Burst: 1, Wait: 100 * second}},
	}}
	if v := call.Decide([]*Cell{&first, &other}, 1000*second); !v.Admitted {
		t.Fatal("refused at first")
	}
	v := call.Decide([]*Cell{&first, &other}, 1001*second)
	if v.Admitted || !call.AskAgain(v) || v.At != 1060*second {
		t.Errorf("got %+v, want to ask again at the end of the window", v)
	}
	if at := other.State(&shared).Earliest(&call.Claims[1], 1, 1001*second, 1001*second); at != 1001*second {
		t.Errorf("the shared bucket is %d us ahead", at-1001*second)
	}
}

// A refund while a call waits for its place does not move the next call closer to that place than the rate allows.
func TestRefundBehindWhichCallsWait(t *testing.T) {
	s := newSubject(t, Rule{Kind: TokenBucket, Per: second})
	c := Claim{Ask: Ask{Cost: 1, Limit: 200, Burst: 1, Wait: second}}
	first, _ := s.ask(c)
	_, waits := s.ask(c)
	s.now += 1000
	s.giveBack(first)
	if _, next := s.ask(c); next.At-waits.At < 5000 {
		t.Errorf("two places are %d us apart, want 5000", next.At-waits.At)
	}
}

// Smaller calls share a place that was given up. In a sliding window each of them gets the time of that place. In a bucket each of them gets
// the time at which the bucket has gained its permits.
func TestFreePlaceIsSplit(t *testing.T) {
	for _, rule := range []Rule{{Kind: SlidingWindow, Per: second}, {Kind: TokenBucket, Per: second}} {
		earlier := map[int64]int64{} // by cost, in microseconds
		if rule.Kind == TokenBucket {
			earlier[1] = 666_666
		}
		s := newSubject(t, rule)
		cost := func(n int64) Claim { return Claim{Ask: Ask{Cost: n, Limit: 3, Burst: 3, Wait: 100 * second}} }
		_, _ = s.ask(cost(3))
		first, v := s.ask(cost(3))
		_, _ = s.ask(cost(3)) // waits behind that place
		s.giveBack(first)
		for _, n := range []int64{1, 2} {
			if _, next := s.ask(cost(n)); next.At != v.At-earlier[n] {
				t.Errorf("%s: a call of %d has a place %d us after that of the larger call", rule.Kind, n, next.At-v.At)
			}
		}
		if _, next := s.ask(cost(1)); next.At <= v.At+second {
			t.Errorf("%s: a call has a place %d us after the free one, which is used up", rule.Kind, next.At-v.At)
		}
	}
}

// A call does not wait for a free place if the rule admits it earlier.
func TestFreePlaceOfARuleThatAdmits(t *testing.T) {
	s, other := newSubject(t, Rule{Kind: SlidingWindow, Per: second}), newSubject(t, Rule{Kind: SlidingWindow, Per: second / 2})
	c, o := Claim{Ask: Ask{Cost: 3, Limit: 3, Wait: 100 * second}}, Claim{Ask: Ask{Cost: 1, Limit: 1, Wait: 100 * second}}
	_, _ = s.ask(c)
	first, _ := s.ask(c)
	_, _ = s.ask(c) // waits behind that place
	s.giveBack(first)
	_, _ = other.ask(o)
	c.Limit, c.Rule, o.Rule = 100, &s.rule, &other.rule
	call := Call{Claims: []Claim{c, o}}
	if v := call.Decide([]*Cell{&s.cell, &other.cell}, s.now); v.At != s.now+second/2 {
		t.Errorf("the call waits %d us, want %d", v.At-s.now, second/2)
	}
}

// A prepaid bucket with a burst may be in debt for calls that have run. If its rule lets no call wait, a refund does not take that debt for
// places of waiting calls.
func TestRefundOfAnEarlierDebt(t *testing.T) {
	s := newSubject(t, Rule{Kind: Prepaid, Per: second})
	c := Claim{Ask: Ask{Cost: 1, Limit: 1, Burst: 3}}
	first, _ := s.ask(c)
	s.require("the burst, and one in debt", s.admits(5, c), 3)
	s.giveBack(first)
	s.require("after a refund", s.admits(2, c), 1)
}

// If only a part of a warm-up's charge is given back, it has the price of warm permits.
func TestRefundOfAPartOfAWarmup(t *testing.T) {
	s := newSubject(t, Rule{Kind: Warmup, Per: second, Warmup: 4 * second})
	call, _ := s.ask(Claim{Ask: Ask{Cost: 2, Limit: 1}})
	c, before := &call.Claims[0], s.cell.Expiry(&s.rule)
	if c.Extra == 0 {
		t.Fatal("cold permits have the price of warm ones")
	}
	c.Delta = -1
	call.Adjust([]*Cell{&s.cell}, s.now)
	if back := before - s.cell.Expiry(&s.rule); back != second {
		t.Errorf("%d us go back, want %d", back, second)
	}
}
