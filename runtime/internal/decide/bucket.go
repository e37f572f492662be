package decide

import "math/bits"

// arrival is GCRA's theoretical arrival time: when a bucket is full again. It is kept whole and in parts of the limit that was
// in force at the last charge, so that no rounding adds up.
type arrival struct{ whole, parts, limit int64 }

// in returns the arrival in parts of limit. Those of another limit are rounded up to a whole.
func (a arrival) in(limit int64) (whole, parts int64) {
	if a.limit != limit {
		return a.whole + min(a.parts, 1), 0
	}
	return a.whole, a.parts
}

// add charges a bucket, which has stored so much time of idling, and returns what is left of that.
func (a *arrival) add(c charge, r *Rule, stored int64) int64 {
	x, y := a.in(c.limit)
	if x < c.at {
		stored = min(r.Warmup, stored+c.at-x)
		x, y = c.at, 0
	}
	x, y = gain(x, y, c.cost, c.limit, r.Per)
	*a = arrival{x + c.extra, y, c.limit}
	return stored - c.stored
}

// subtract takes a charge back that counts no more as one of its own, and returns what is stored then.
func (a *arrival) subtract(c charge, r *Rule, stored int64) int64 {
	x, y := a.in(c.limit)
	x, y = gain(x, y, -c.cost, c.limit, r.Per)
	*a = arrival{x - c.extra, y, c.limit}
	return min(r.Warmup, stored+c.stored)
}

// bucket is the arrival after all charges.
type bucket struct {
	arrival
	queue *queue // nil while nobody waits
}

func (b *bucket) Earliest(c *Claim, now int64) int64 {
	if b.queue == nil {
		return b.free(c, c.Needed(), now)
	}
	return min(b.queue.free(c, now), b.free(c, c.Needed(), max(now, b.queue.last())))
}

// free returns the first time, from one on, at which the bucket lacks no more than so many permits, negated.
func (a arrival) free(c *Claim, needed, from int64) int64 {
	x, y := a.in(c.Limit)
	if x < from {
		return from
	}
	x, y = gain(x, y, needed, c.Limit, c.Rule.Per)
	return max(from, x+min(y, 1))
}

func (b *bucket) Commit(c *Claim, now, at int64) (used int64) {
	b.commit(charge{at: at, cost: c.Cost, limit: c.Limit}, c.Rule, now, 0)
	return 0
}

func (b *bucket) Return(c *Claim, now int64) {
	b.giveBack(charge{at: c.At, cost: c.Cost, limit: c.Limit}, c.Rule, now, 0)
}

func (b *bucket) Expiry(*Rule) int64 { return b.whole + min(b.parts, 1) }

// commit returns what is left of the stored time.
func (b *bucket) commit(c charge, r *Rule, now, stored int64) int64 {
	if b.queue != nil || c.at > now {
		return b.enqueue(c, r, now, stored)
	}
	return b.add(c, r, stored)
}

// gain adds to a time, whole and in parts of limit, that in which a bucket gains n permits; n may be negative.
func gain(whole, parts, n, limit, per int64) (int64, int64) {
	parts += n * (per % limit)
	carry := parts / limit
	if parts %= limit; parts < 0 {
		parts += limit
		carry--
	}
	return whole + n*(per/limit) + carry, parts
}

// warm is a bucket without a burst, the next call pays, and the time of idling that it stored, up to the rule's warm-up. The
// permits of the upper half of that time cost more, linearly up to three times as much: Guava's SmoothWarmingUp. What a call
// costs is fixed when it is admitted, whatever is given back later.
type warm struct {
	bucket
	stored int64
}

func (w *warm) Earliest(c *Claim, now int64) int64 {
	x, y := w.in(c.Limit)
	return max(now, x+min(y, 1))
}

func (w *warm) Commit(c *Claim, now, at int64) (used int64) {
	stored, warmup := w.stored, c.Rule.Warmup
	if x, _ := w.in(c.Limit); x < at {
		stored = min(warmup, stored+at-x)
	}
	above := max(0, stored-warmup/2)
	taken, _ := gain(0, 0, c.Cost, c.Limit, c.Rule.Per)
	cold := min(above, taken)
	c.Extra, c.Stored = ceiling(2*cold, 2*above-cold, warmup), min(stored, taken)
	w.stored = w.commit(priced(c, at), c.Rule, now, w.stored)
	return 0
}

func (w *warm) Return(c *Claim, now int64) {
	w.stored = w.giveBack(priced(c, c.At), c.Rule, now, w.stored)
}

func priced(c *Claim, at int64) charge {
	return charge{at: at, cost: c.Cost, limit: c.Limit, extra: c.Extra, stored: c.Stored}
}

// ceiling returns a*b/c, rounded up. The product may have more bits than an int64.
func ceiling(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	quotient, rest := bits.Div64(high, low, uint64(c))
	return int64(quotient + min(rest, 1))
}

func (w *warm) Expiry(r *Rule) int64 { return w.bucket.Expiry(r) + r.Warmup }
