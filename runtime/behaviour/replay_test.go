package behaviour_test

import (
	"math/big"
	"slices"
	"sort"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A bucket is full again at tat, in terms of a limit. One that warms up has stored so much time of idling until then.
type bucket struct {
	tat, stored *big.Rat
	rule        ratelimit.Rule
}

// replay fills a bucket by what came of each call: every admission, by its time, moves tat to max(tat, admission) + cost*P/L, and
// what is gained by that is stored. TAT is exact; where another limit takes over it is kept, rounded up to a whole microsecond.
func replay(h history, rule ratelimit.Rule) bucket {
	b, waiting := settle(h, rule)
	for _, e := range waiting {
		b = b.charge(e)
	}
	return b.of(rule)
}

// settle fills a bucket by what had come of each call when the last one was given back, and returns the calls behind that.
//
// A call that is given back while it waits for its place has never been; those that keep their places keep them. Later there is
// no telling what came of it: what it took is put back, behind all that had been settled.
func settle(h history, rule ratelimit.Rule) (b bucket, waiting history) {
	b = bucket{new(big.Rat), instantOf(rule.Warmup.Microseconds()), rule}
	for _, e := range h {
		if !e.back {
			i := sort.Search(len(waiting), func(i int) bool { return waiting[i].at > e.at })
			waiting = slices.Insert(waiting, i, e)
			continue
		}
		for len(waiting) > 0 && waiting[0].at <= e.at {
			b, waiting = b.charge(waiting[0]), waiting[1:]
		}
		if i := lastLike(waiting, e); i >= 0 {
			waiting = slices.Delete(waiting, i, i+1)
		} else {
			b = b.putBack(e)
		}
	}
	return b, waiting
}

// lastLike returns the last event that is what another gives back. Calls of one place and price are alike.
func lastLike(h []event, back event) int {
	for i, e := range slices.Backward(h) {
		alike := e.at == back.place && e.cost == back.cost && e.rule.Limit == back.rule.Limit
		if alike && same(e.extra, back.extra) && same(e.taken, back.taken) {
			return i
		}
	}
	return -1
}

func same(a, b *big.Rat) bool { return a == b || a.Cmp(b) == 0 }

func (b bucket) charge(e event) bucket {
	b = b.of(e.rule).idle(e.at)
	b.tat = new(big.Rat).Add(b.tat, refill(e.rule, e.cost))
	if e.extra != nil {
		b.tat.Add(b.tat, e.extra)
		b.stored = new(big.Rat).Sub(b.stored, e.taken)
	}
	return b
}

func (b bucket) putBack(e event) bucket {
	b = b.of(e.rule)
	b.tat = new(big.Rat).Sub(b.tat, refill(e.rule, e.cost))
	if e.extra != nil {
		b.tat.Sub(b.tat, e.extra)
		b.stored = least(b.most(), new(big.Rat).Add(b.stored, e.taken))
	}
	return b
}

// of is the bucket under another limit.
func (b bucket) of(rule ratelimit.Rule) bucket {
	if b.rule.Limit != rule.Limit {
		b.tat = roundUp(b.tat)
	}
	b.rule = rule
	return b
}

// idle is the bucket at an instant.
func (b bucket) idle(at int64) bucket {
	if whole, now := floor(b.tat), instantOf(at); whole.Cmp(now) < 0 {
		gained := new(big.Rat).Sub(now, whole)
		b.tat, b.stored = now, least(b.most(), gained.Add(gained, b.stored))
	}
	return b
}

func (b bucket) most() *big.Rat { return instantOf(b.rule.Warmup.Microseconds()) }
