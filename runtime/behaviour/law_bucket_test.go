package behaviour_test

import (
	"math/big"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const mostOfABucket = 10_000_000

// bucketLaw: a call fits at t if TAT + cost*P/L - B*P/L <= t. In a prepaid bucket it fits if TAT - B*P/L <= t. TAT is the time at which the
// bucket is full again after all charges, including those of waiting calls. So places are given out first come, first served.
//
// A warm-up is Guava's SmoothWarmingUp with a cold factor of 3. It stores idle time: at most W, and W in the beginning. Permits from the lower
// half of the stored time take their normal time. Permits from the upper half take up to three times as long: together 2*cold*(2*above-cold)/W
// longer than normal. A call passes when the time of all calls before it is over.
type bucketLaw struct{ rule ratelimit.Rule }

func (l bucketLaw) window() string {
	switch {
	case l.rule.Warmup > 0:
		return "warm " + l.rule.Per.String() + " " + l.rule.Warmup.String()
	case l.rule.Algorithm == ratelimit.LeakyBucket:
		return "leaky " + l.rule.Per.String()
	default:
		return "bucket " + l.rule.Per.String()
	}
}

// prepays reports whether a call may leave the bucket in debt.
func (l bucketLaw) prepays() bool { return l.rule.Prepay || l.rule.Warmup > 0 }

func (l bucketLaw) burst() int64 {
	switch {
	case l.rule.Warmup > 0, l.rule.Algorithm == ratelimit.LeakyBucket && l.rule.Prepay:
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
	case l.prepays(): // a debt lasts a day, and one permit is always admitted
		day := 24*time.Hour - l.rule.Warmup/2
		return max(1, min(mostOfABucket, day.Microseconds()*l.rule.Limit/l.rule.Per.Microseconds()))
	default:
		return l.burst()
	}
}

func (l bucketLaw) earliest(h history, now, from int64, q ask) int64 {
	needed := -l.burst()
	if !l.prepays() {
		needed += q.cost
	}
	b := l.replay(h, now)
	return max(from, b.cut, roundUp(b.tat.Add(b.tat, refill(l.rule, needed))).Num().Int64())
}

// keeps is true only at the time at which the bucket itself would admit the call. So a call that waits for another rule does not delay everybody.
func (l bucketLaw) keeps(h history, now, at int64, q ask) bool {
	return l.earliest(h, now, now, q) == at
}

func (l bucketLaw) used(history, int64) int64 { panic("a bucket has no window") }

// price returns how much longer than normal a call's permits take, and how much stored time they use up. Both are fixed when the call is admitted.
func (l bucketLaw) price(h history, now, cost int64) (extra, taken *big.Rat) {
	worth := floor(refill(l.rule, cost))
	stored := l.replay(h, now).stored
	return roundUp(cold(instantOf(l.rule.Warmup.Microseconds()), stored, worth)), least(stored, worth)
}

// cold returns how much longer than normal it takes to use up the stored time taken.
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

// A bucket is full again at tat, at its limit. A warm-up has stored this much idle time until then. last is the time of the last charge, or of
// the first call at the limit if that is later. After a raise of the limit, oldFull is when the bucket would have been full without it. If the
// limit is lowered before that, or changes while calls wait, it holds from cut on: no call passes before, and no charge from before comes back.
type bucket struct {
	tat, stored        *big.Rat
	rule               ratelimit.Rule
	last, cut, oldFull int64
}

// replay computes a bucket from the history of its calls.
func (l bucketLaw) replay(h history, now int64) bucket {
	b := bucket{tat: new(big.Rat), stored: instantOf(l.rule.Warmup.Microseconds()), rule: l.rule}
	for i, e := range h {
		if i == 0 {
			b.rule = e.rule
		}
		switch {
		case e.asked && l.rule.Warmup == 0:
			b = b.of(e.rule, e.now)
		case e.asked:
		case e.back:
			b = b.putBack(e)
		default:
			b = b.charge(e)
		}
	}
	return b.of(l.rule, now).idle(now)
}

func (b bucket) charge(e event) bucket {
	b = b.of(e.rule, e.now).idle(e.now)
	if b.last = max(b.last, e.at); b.oldFull <= e.now {
		b.cut, b.oldFull = 0, 0
	}
	b.tat = new(big.Rat).Add(b.tat, refill(e.rule, e.cost))
	if e.extra != nil {
		b.tat.Add(b.tat, e.extra)
		b.stored = new(big.Rat).Sub(b.stored, e.taken)
	}
	return b
}

// putBack gives back the permits of a charge, except those that the bucket may have gained since only because they were missing: at most what
// it gained until the last charge. If the limit has changed, or while calls wait, debts do not come back.
func (b bucket) putBack(e event) bucket {
	own, last, extra, taken := e.rule, b.last, e.extra, e.taken
	own.Limit = b.rule.Limit
	switch {
	case floor(b.tat).Cmp(instantOf(e.now)) < 0, e.at < b.cut, own.Limit != e.rule.Limit && bucketLaw{own}.prepays():
		return b
	case extra == nil:
		extra, taken = new(big.Rat), new(big.Rat)
	default: // a warm-up
		paid := new(big.Rat).Add(instantOf(e.at), new(big.Rat).Add(extra, roundUp(refill(e.rule, e.cost))))
		if last = paid.Num().Int64(); roundUp(b.tat).Cmp(paid) <= 0 {
			last = e.at
		}
	}
	if (bucketLaw{own}).prepays() && last > e.now {
		return b
	}
	lost := instantOf(max(0, last-e.at))
	lost = roundUp(lost.Mul(lost, big.NewRat(max(own.Limit, e.rule.Limit), own.Limit)))
	if lost.Cmp(new(big.Rat).Add(extra, floor(refill(own, e.cost)))) > 0 {
		return b
	}
	b.tat = lost.Add(lost, b.tat).Sub(lost, refill(own, e.cost)).Sub(lost, extra)
	if cut := instantOf(b.cut); floor(b.tat).Cmp(cut) < 0 {
		b.tat = cut
	}
	b.stored = least(b.most(), new(big.Rat).Add(b.stored, taken))
	if b.rule.Warmup == 0 && roundUp(b.tat).Cmp(instantOf(e.now)) <= 0 && b.oldFull <= e.now {
		b.tat, b.cut = new(big.Rat), 0 // nothing is left of it
	}
	return b
}

// of returns the bucket as the first call at another limit finds it. Since last it gained at the lower of the two rates, but as long as calls
// wait for their places, at the old rate. The number of missing permits stays the same. A debt of a prepaid bucket keeps its time.
func (b bucket) of(rule ratelimit.Rule, now int64) bucket {
	old := b.rule
	b.rule = rule
	if old.Limit == rule.Limit {
		return b
	}
	from := b.last
	if rule.Limit > old.Limit || roundUp(b.tat).Cmp(instantOf(now-time.Second.Microseconds())) <= 0 { // a full bucket is remembered for a second
		from = max(from, now)
	}
	if law := (bucketLaw{rule}); law.prepays() {
		from = max(from, b.cut, roundUp(new(big.Rat).Sub(b.tat, refill(old, law.burst()))).Num().Int64())
	}
	if cuts := from > now || rule.Limit < old.Limit && b.oldFull > now; rule.Warmup == 0 && (cuts || rule.Limit > old.Limit) {
		b.oldFull = max(b.oldFull, roundUp(b.tat).Num().Int64())
		if cuts {
			b.cut = max(from, now)
		}
	}
	lacks := new(big.Rat).Sub(b.tat, instantOf(from))
	if lacks.Sign() > 0 {
		b.tat = lacks.Mul(lacks, big.NewRat(old.Limit, rule.Limit)).Add(lacks, instantOf(from))
	} else {
		b.tat = roundUp(b.tat)
	}
	b.last = max(b.last, now)
	return b
}

// idle returns the bucket as it is at a time.
func (b bucket) idle(at int64) bucket {
	if whole, now := floor(b.tat), instantOf(at); whole.Cmp(now) < 0 {
		gained := new(big.Rat).Sub(now, whole)
		b.tat, b.stored = now, least(b.most(), gained.Add(gained, b.stored))
	}
	return b
}

func (b bucket) most() *big.Rat { return instantOf(b.rule.Warmup.Microseconds()) }

// refill returns the time in which the bucket gains n permits: n*P/L.
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
