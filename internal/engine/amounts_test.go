package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// On random schedules a sliding window of amounts never admits more than the limit. Its retry delays are exact while fewer than 2,048 calls
// count, and beyond that at most a 2,048th of the period too long.
func TestAmountsAgainstExactArithmetic(t *testing.T) {
	const schedules = 10_000
	late, joined := 0, 0
	for seed := range uint64(schedules) {
		s := newSchedule(seed)
		for range s.calls {
			s.step(t)
		}
		late, joined = late+s.late, joined+s.joined
	}
	if late == 0 || joined == 0 {
		t.Errorf("%d delays are too long, and %d charges are joined: the schedules do not go far enough", late, joined)
	}
}

// schedule is a random schedule of calls, decided by amounts and by a list of all charges.
type schedule struct {
	rand         *rand.Rand
	seed         uint64
	rule         *Rule
	limit, now   int64
	calls        int
	steps        []int64 // the longest times between calls
	most         int64   // the largest usual cost
	amounts      amounts
	exact        []amount // every charge at its true time
	claims       []Claim
	late, joined int
}

func newSchedule(seed uint64) *schedule {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &schedule{rand: r, seed: seed, now: 1e15, calls: 60}
	s.rule = &Rule{Kind: Amounts, Per: []int64{50, 3000, 60_000_000}[r.IntN(3)]}
	s.limit = []int64{40, 100_000, 1_000_000_000}[r.IntN(3)]
	s.steps, s.most = []int64{1, 2, s.rule.Per / 30, s.rule.Per / 20}, s.limit/8
	if seed%1000 == 0 { // many small calls in a window
		s.rule.Per, s.limit, s.calls = 60_000_000, 1_000_000_000, 6000
		s.steps, s.most = []int64{1, 2, 30_000}, s.limit/2500
	}
	return s
}

func (s *schedule) step(t *testing.T) {
	s.now += s.rand.Int64N(s.steps[s.rand.IntN(len(s.steps))] + 1)
	c := Claim{Ask: Ask{Rule: s.rule, Limit: s.limit, Cost: 1 + s.rand.Int64N(s.most)}}
	if s.rand.IntN(50) == 0 {
		c.Cost = s.limit // when would all permits have left?
	}
	got, want := s.amounts.Earliest(&c, c.Cost, s.now, s.now), s.earliest(c.Cost)
	most := want
	if len(s.amounts.entries) >= mostExact {
		most += s.rule.Per/mostExact + 1
	}
	if got < want || got > most {
		t.Fatalf("schedule %d: %d permits fit at %d; expected %d to %d", s.seed, c.Cost, got, want, most)
	}
	if got > want {
		s.late++
	}
	if got == s.now {
		s.charge(c)
	} else if len(s.claims) > 0 && s.rand.IntN(3) == 0 {
		s.giveBack(s.rand.IntN(len(s.claims)))
	}
}

// earliest returns when n permits fit, by all charges that still count.
func (s *schedule) earliest(n int64) int64 {
	used := int64(0)
	for _, e := range s.exact {
		used += e.permits
	}
	at := s.now
	for _, e := range s.exact {
		if used+n <= s.limit {
			break
		}
		at, used = max(at, e.at+s.rule.Per), used-e.permits
	}
	return at
}

func (s *schedule) charge(c Claim) {
	c.At, c.Charged = s.now, c.Cost
	s.amounts.Commit(&c, c.Cost, s.now, s.now)
	if c.Dated {
		s.joined++
	}
	for len(s.exact) > 0 && s.exact[0].at <= s.now-s.rule.Per {
		s.exact, s.claims = s.exact[1:], s.claims[1:]
	}
	s.exact, s.claims = append(s.exact, amount{s.now, c.Cost}), append(s.claims, c)
}

func (s *schedule) giveBack(i int) {
	c := s.claims[i]
	s.amounts.GiveBack(&c, c.Charged, s.now, false)
	s.exact, s.claims = slices.Delete(slices.Clone(s.exact), i, i+1), slices.Delete(slices.Clone(s.claims), i, i+1)
}
