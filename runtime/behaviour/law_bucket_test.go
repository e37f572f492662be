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
	tat := l.replay(h, now).tat
	return max(from, roundUp(tat.Add(tat, refill(l.rule, needed))).Num().Int64())
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

// A bucket is full again at tat, at its limit. A warm-up has stored this much idle time until then.
type bucket struct {
	tat, stored *big.Rat
	rule        ratelimit.Rule
}

// replay computes a bucket from the history of its calls. TAT is exact, but rounded to a whole microsecond when the limit changes.
func (l bucketLaw) replay(h history, now int64) bucket {
	b := bucket{new(big.Rat), instantOf(l.rule.Warmup.Microseconds()), l.rule}
	for _, e := range h {
		if e.back {
			b = b.putBack(e)
		} else {
			b = b.charge(e)
		}
	}
	return b.of(l.rule, now).idle(now)
}

func (b bucket) charge(e event) bucket {
	b = b.of(e.rule, e.now).idle(e.now)
	b.tat = new(big.Rat).Add(b.tat, refill(e.rule, e.cost))
	if e.extra != nil {
		b.tat.Add(b.tat, e.extra)
		b.stored = new(big.Rat).Sub(b.stored, e.taken)
	}
	return b
}

// putBack gives back the permits that have not refilled since the charge. While calls wait for their places, it gives nothing back, because the
// bucket would have run over meanwhile.
func (b bucket) putBack(e event) bucket {
	back, now, extra, taken := b.of(e.rule, e.now), instantOf(e.now), e.extra, e.taken
	if extra == nil {
		extra, taken = new(big.Rat), new(big.Rat)
	}
	refilled, worth := instantOf(e.now-e.at), new(big.Rat).Add(extra, floor(refill(e.rule, e.cost)))
	if refilled.Cmp(worth) > 0 || floor(back.tat).Cmp(now) < 0 {
		return b
	}
	if back.othersWait(e) {
		return b
	}
	back.tat = refilled.Add(refilled, back.tat).Sub(refilled, refill(e.rule, e.cost)).Sub(refilled, extra)
	back.stored = least(back.most(), new(big.Rat).Add(back.stored, taken))
	return back
}

// othersWait reports whether other calls wait, which it concludes from the debt. A prepaid bucket may also be in debt for calls that have run:
// without a burst only for this call, and with a burst for others, too. With a burst, othersWait counts the debt of others only if the rule lets
// calls wait.
func (b bucket) othersWait(e event) bool {
	law := bucketLaw{e.rule}
	paid := roundUp(new(big.Rat).Sub(b.tat, refill(e.rule, law.burst())))
	if paid.Cmp(instantOf(e.now)) <= 0 {
		return false
	}
	own := new(big.Rat).Add(instantOf(e.at), refill(e.rule, e.cost))
	if e.extra != nil {
		own.Add(own, e.extra)
	}
	return !law.prepays() || (e.wait > 0 || law.burst() == 0) && roundUp(b.tat).Cmp(roundUp(own)) > 0
}

// of returns the bucket at another limit. The number of missing permits stays the same. A debt keeps its time.
func (b bucket) of(rule ratelimit.Rule, at int64) bucket {
	old, now := b.rule, instantOf(at)
	b.rule = rule
	if old.Limit == rule.Limit {
		return b
	}
	b.tat = roundUp(b.tat)
	if b.tat.Cmp(now) <= 0 {
		return b
	}
	lacks, debt := new(big.Rat).Sub(b.tat, now), new(big.Rat)
	if law := (bucketLaw{rule}); law.prepays() {
		burst := least(lacks, roundUp(refill(old, law.burst())))
		lacks, debt = burst, new(big.Rat).Sub(lacks, burst)
	}
	lacks = roundUp(new(big.Rat).Mul(lacks, big.NewRat(old.Limit, rule.Limit)))
	b.tat = now.Add(now, lacks).Add(now, debt)
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
