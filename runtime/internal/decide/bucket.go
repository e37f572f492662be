package decide

import "math/bits"

// bucket is GCRA's theoretical arrival time: when the bucket is full again. It is kept whole and in parts of the limit that
// was in force at the last charge, so that no rounding adds up.
type bucket struct{ whole, parts, limit int64 }

func (b *bucket) Earliest(c *Claim, now int64) int64 {
	x, y := b.arrival(c.Limit)
	if x < now {
		return now
	}
	x, y = gain(x, y, c.Needed(), c.Limit, c.Rule.Per)
	return max(now, x+min(y, 1))
}

func (b *bucket) Commit(c *Claim, _, at int64) (used int64) {
	x, y := b.arrival(c.Limit)
	if x < at {
		x, y = at, 0
	}
	b.charge(x, y, c.Cost, c)
	return 0
}

func (b *bucket) Return(c *Claim, now int64) {
	if x, y := b.arrival(c.Limit); x >= now {
		b.charge(x, y, -c.Cost, c)
	}
}

func (b *bucket) Expiry(*Rule) int64 { return b.whole + min(b.parts, 1) }

func (b *bucket) charge(x, y, cost int64, c *Claim) {
	b.whole, b.parts = gain(x, y, cost, c.Limit, c.Rule.Per)
	b.limit = c.Limit
}

// arrival returns the arrival time in parts of limit. Those of another limit are rounded up to a whole.
func (b *bucket) arrival(limit int64) (whole, parts int64) {
	if b.limit != limit {
		return b.whole + min(b.parts, 1), 0
	}
	return b.whole, b.parts
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
// permits of the upper half of that time cost more, linearly up to three times as much: Guava's SmoothWarmingUp.
type warm struct {
	bucket
	stored int64
}

func (w *warm) Earliest(c *Claim, now int64) int64 {
	x, y := w.arrival(c.Limit)
	return max(now, x+min(y, 1))
}

func (w *warm) Commit(c *Claim, _, at int64) (used int64) {
	warmup := c.Rule.Warmup
	x, y := w.arrival(c.Limit)
	if x < at {
		w.stored = min(warmup, w.stored+at-x)
		x, y = at, 0
	}
	above := max(0, w.stored-warmup/2)
	taken, _ := gain(0, 0, c.Cost, c.Limit, c.Rule.Per)
	cold := min(above, taken)
	extra := ceiling(2*cold, 2*above-cold, warmup)
	w.stored -= min(w.stored, taken)
	w.charge(x+extra, y, c.Cost, c)
	return 0
}

// ceiling returns a*b/c, rounded up. The product may have more bits than an int64.
func ceiling(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	quotient, rest := bits.Div64(high, low, uint64(c))
	return int64(quotient + min(rest, 1))
}

func (w *warm) Expiry(r *Rule) int64 { return w.bucket.Expiry(r) + r.Warmup }
