package behaviour_test

import (
	"math/big"
	"slices"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const mostOfABucket = 10_000_000

// bucketLaw: TAT + cost*P/L - B*P/L <= t, or TAT - B*P/L <= t where the next call pays. TAT is the instant at which the bucket
// is full again, after what was charged up to t. What others have reserved for later is taken along with the cost, and so that
// all of it is stored, also where the next call pays.
type bucketLaw struct{ rule ratelimit.Rule }

func (l bucketLaw) window() string {
	if l.rule.Algorithm == ratelimit.LeakyBucket {
		return "leaky " + l.rule.Per.String()
	}
	return "bucket " + l.rule.Per.String()
}

func (l bucketLaw) burst() int64 {
	switch {
	case l.rule.Algorithm == ratelimit.LeakyBucket && l.rule.Prepay:
		return 0
	case l.rule.Algorithm == ratelimit.LeakyBucket:
		return 1
	case l.rule.Burst > 0:
		return l.rule.Burst
	default:
		return l.rule.Limit
	}
}

func (l bucketLaw) most() int64 {
	switch {
	case l.rule.Limit == 0:
		return 0
	case l.rule.Prepay:
		return mostOfABucket
	default:
		return l.burst()
	}
}

func (l bucketLaw) fits(h history, t int64, q ask) bool {
	bound, ok := l.bound(h, t, q.cost)
	return ok && bound.Cmp(instantOf(t)) <= 0
}

func (l bucketLaw) turns(h history, now int64, q ask) []int64 {
	turns := []int64{now}
	for _, e := range h {
		if e.at > now && !e.back && !e.returned {
			turns = append(turns, e.at)
		}
	}
	for _, t := range turns {
		if bound, ok := l.bound(h, t, q.cost); ok {
			turns = append(turns, roundUp(bound).Num().Int64())
		}
	}
	return turns
}

func (l bucketLaw) used(history, int64) int64 { panic("a bucket has no window") }

// bound is from when a cost fits by what was charged up to t, or false if that and what is reserved never do.
func (l bucketLaw) bound(h history, t, cost int64) (*big.Rat, bool) {
	b, waiting := settle(h, l.rule)
	for len(waiting) > 0 && waiting[0].at <= t {
		b, waiting = b.charge(waiting[0]), waiting[1:]
	}
	if slices.ContainsFunc(waiting, func(e event) bool { return e.rule.Limit != l.rule.Limit }) {
		return nil, false // what is reserved is in permits of another size
	}
	reserved := int64(0)
	for _, e := range waiting {
		reserved += e.cost
	}
	if l.rule.Prepay && reserved == 0 {
		cost = 0
	} else if cost += reserved; cost > l.burst() {
		return nil, false
	}
	tat := b.of(l.rule).tat
	return new(big.Rat).Add(tat, refill(l.rule, cost-l.burst())), true
}

// warmLaw is Guava's SmoothWarmingUp with a cold factor of 3. What is stored is a time: at most W, and W in the beginning. Half
// of it costs what it is worth; the permits above that cost up to three times as much, in the mean of their range:
// 2*cold*(2*above-cold)/W more than they are worth. A call passes from the end of what those before it cost.
type warmLaw struct{ rule ratelimit.Rule }

func (l warmLaw) window() string { return "warm " + l.rule.Per.String() + " " + l.rule.Warmup.String() }

func (l warmLaw) most() int64 {
	if l.rule.Limit == 0 {
		return 0
	}
	return mostOfABucket
}

func (l warmLaw) fits(h history, t int64, _ ask) bool { return l.free(h).Cmp(instantOf(t)) <= 0 }

func (l warmLaw) turns(h history, _ int64, _ ask) []int64 {
	return []int64{l.free(h).Num().Int64()}
}

func (l warmLaw) used(history, int64) int64 { panic("a bucket has no window") }

// free is the whole instant at which the next call passes.
func (l warmLaw) free(h history) *big.Rat { return roundUp(replay(h, l.rule).tat) }

// price is what a call costs beyond its worth, and what it takes of the stored time. It is fixed when the call is admitted.
func (l warmLaw) price(h history, at, cost int64) (extra, taken *big.Rat) {
	worth := floor(refill(l.rule, cost))
	stored := replay(h, l.rule).idle(at).stored
	return roundUp(cold(instantOf(l.rule.Warmup.Microseconds()), stored, worth)), least(stored, worth)
}

// cold is what taking costs beyond its worth.
func cold(w, stored, taken *big.Rat) *big.Rat {
	half := floor(new(big.Rat).Mul(w, big.NewRat(1, 2)))
	above := new(big.Rat).Sub(stored, half)
	if above.Sign() <= 0 {
		return new(big.Rat)
	}
	cold := least(above, taken)
	height := new(big.Rat).Sub(new(big.Rat).Add(above, above), cold)
	twice := new(big.Rat).Add(cold, cold)
	return new(big.Rat).Quo(twice.Mul(twice, height), w)
}

// refill is the time in which n permits flow into the bucket: n*P/L.
func refill(r ratelimit.Rule, n int64) *big.Rat {
	time := instantOf(r.Per.Microseconds())
	return time.Mul(time, big.NewRat(n, r.Limit))
}

func instantOf(t int64) *big.Rat { return new(big.Rat).SetInt64(t) }

func floor(t *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Div(t.Num(), t.Denom())) // Euclidean: the denominator is positive
}

func roundUp(t *big.Rat) *big.Rat {
	return new(big.Rat).Neg(floor(new(big.Rat).Neg(t)))
}

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}
