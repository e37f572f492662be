package engine

import (
	"fmt"
	"math"
	"math/bits"
	"sort"
)

// bucket is the generic cell rate algorithm (ITU-T I.371) with an exact clock: it remembers when the bucket is full again, its
// theoretical arrival time. That is full + parts/limit microseconds, where limit is the rate at the last charge, so no rounding
// adds up.
type bucket struct{ full, parts, limit int64 }

func newBucket(*Rule) State { return &bucket{full: longAgo} }

// bucketTerms are the period and the burst. To give back, they also have the price of the charge, until when the debt of a Prepaid bucket
// may be that of calls that ran, and how long a lease lasts.
func bucketTerms(c *Claim, _, _ int64) Terms {
	t := Terms{A: c.Rule.Per, B: c.Burst}
	if c.Delta < 0 && (c.Rule.Kind.isPrepaid() || c.Rule.Lease > 0) {
		extra, stored := c.Price(-c.Delta)
		t.Text = fmt.Appendf(nil, "%d %d %d %d", extra, stored, c.ownDebt(), c.Rule.Lease)
	}
	return t
}

func mostByBurst(c *Claim) (int64, string) {
	if c.Burst == c.Limit {
		return c.Limit, "limit"
	}
	return c.Burst, "burst"
}

// maxDebt is how long a debt lasts at most: that of a call in a Prepaid or Warmup, and of a charge beyond the limit.
const maxDebt = 24 * 3600 * 1_000_000

// mostByDebt is the largest cost whose debt lasts no longer than maxDebt. One permit is always admitted.
func mostByDebt(c *Claim) (int64, string) {
	return max(1, c.debt(maxDebt-(c.Rule.Warmup+1)/2)), "largest debt" // a cold Warmup is up to half of its time longer in debt
}

// debt returns how many permits a bucket gains in a time, at most in maxDebt.
func (c *Claim) debt(d int64) int64 { return min(d*c.Limit/c.Rule.Per, MaxBucketLimit) }

// MostSettled returns how many permits can at most be charged beyond what the claim was charged: those in a full bucket, and what it gains
// in maxDebt.
func (c *Claim) MostSettled() int64 {
	if c.Rule.Kind.Row().IsBucket {
		return c.Burst + c.debt(maxDebt) + 1
	}
	return math.MaxInt64
}

// Left returns how many of n permits have to be left out of a debt that would last too long by d with all of them. A part of a permit
// counts as one.
func (c *Claim) Left(n, d int64) int64 {
	if d <= 0 {
		return 0
	}
	return min(n, MulDiv(d, c.Limit, c.Rule.Per))
}

// isPrepaid reports whether a call runs before its permits are there, so that the next one waits for them.
func (k Kind) isPrepaid() bool { return k == Prepaid || k == Warmup }

// needed returns how many permits may be missing from a full bucket for n permits to pass, as a negative number.
func (c *Claim) needed(n int64) int64 {
	if c.Rule.Kind.isPrepaid() {
		return -c.Burst
	}
	return n - c.Burst
}

// in returns when the bucket is full again at the claim's limit. After a change of the limit as many permits are missing as
// before. Debts keep their time: what a Prepaid bucket lacks beyond its burst, and all that a Warmup lacks.
func (b *bucket) in(c *Claim, now int64) (whole, parts int64) {
	if b.limit == c.Limit {
		return b.full, b.parts
	}
	whole = b.full + min(b.parts, 1)
	if whole <= now || b.limit == 0 {
		return whole, 0
	}
	missing, debt := whole-now, int64(0)
	if c.Rule.Kind.isPrepaid() {
		stored := min(missing, MulDiv(c.Burst, c.Rule.Per, b.limit))
		missing, debt = stored, missing-stored
	}
	return now + MulDiv(missing, b.limit, c.Limit) + debt, 0
}

// longest is the longest time that a bucket may take to be full: a hundred years.
const longest = 36600 * 24 * 3600 * 1_000_000

// MulDiv returns a*b/c, rounded up, and at most 3.2*10^15, which is longest. The product may have more bits than an int64.
func MulDiv(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return longest
	}
	quotient, rest := bits.Div64(high, low, uint64(c))
	return int64(min(quotient+min(rest, 1), longest))
}

// gain adds to a time, whole and in parts of limit, the time in which a bucket gains n permits; n may be negative.
func (c *Claim) gain(whole, parts, n int64) (int64, int64) {
	limit, per := c.Limit, c.Rule.Per
	whole += n * (per / limit)
	parts += n * (per % limit)
	if 0 <= parts && parts < limit { // often, and a division takes long
		return whole, parts
	}
	carry := parts / limit
	if parts %= limit; parts < 0 {
		parts += limit
		carry--
	}
	return whole + carry, parts
}

// lacks returns the first time, not before from, at which no more permits are missing from a full bucket than needed says.
func (b *bucket) lacks(c *Claim, needed, now, from int64) int64 {
	x, y := b.in(c, now)
	if x < now {
		x, y = now, 0
	}
	x, y = c.gain(x, y, needed)
	return max(from, x+min(y, 1))
}

func (b *bucket) Earliest(c *Claim, n, now, from int64) int64 {
	return b.lacks(c, c.needed(n), now, from)
}

func (b *bucket) Room(c *Claim, now int64) int64 {
	if c.Burst == 0 { // the bucket stores nothing: it admits the next call, or it does not
		if b.lacks(c, 0, now, now) > now {
			return 0
		}
		return 1
	}
	return int64(sort.Search(int(c.Burst), func(i int) bool { return b.lacks(c, int64(i)+1-c.Burst, now, now) > now }))
}

func (b *bucket) Full(c *Claim, now int64) int64 { return b.lacks(c, 0, now, now) }

// Reserves is true only at the time that the bucket itself dictates. A later place, which another rule of the call needs, would carry the
// bucket ahead for everybody.
func (b *bucket) Reserves(c *Claim, now, at int64) bool { return b.Earliest(c, c.Cost, now, now) == at }

func (b *bucket) Commit(c *Claim, n, now, at int64) bool {
	b.add(c, n, now, now)
	return true
}

// add charges n permits, at from or later. That is the same for a call that waits: its place is the time at which the bucket has refilled
// enough.
func (b *bucket) add(c *Claim, n, now, from int64) {
	x, y := b.in(c, now)
	if x < from {
		x, y = from, 0
	}
	x, y = c.gain(x, y, n)
	*b = bucket{x, y, c.Limit}
}

func (b *bucket) Charge(c *Claim, n, now int64) {
	before, _ := b.in(c, now)
	b.add(c, n, now, now)
	empty, _ := c.gain(now, 0, c.Burst)
	most := max(before, empty+maxDebt)
	c.Delta = c.Left(n, b.full-most)
	if b.full >= most {
		b.full, b.parts = most, 0
	}
}

func (b *bucket) Last(c *Claim, n, now int64) bool {
	extra, _ := c.Price(n)
	x, y := b.in(c, now)
	x, y = c.gain(x-extra, y, c.needed(n)-n)
	return x+min(y, 1) <= c.At
}

func (b *bucket) GiveBack(c *Claim, n, now int64, _ bool) { b.subtract(c, n, now) }

// ownDebt returns until when the debt of a Prepaid bucket may be that of calls that ran. If it lasts longer, others wait for their places.
// Without a burst, nobody else runs before a charge is paid. With a burst others may, so this asks whether calls wait under the rule.
func (c *Claim) ownDebt() int64 {
	if c.Wait == 0 && c.Burst > 0 {
		return never
	}
	return c.At + c.Extra + MulDiv(c.Charged, c.Rule.Per, c.Limit)
}

// debtOf returns for how long n permits of a place hold up the next place.
func (c *Claim) debtOf(n int64) int64 {
	if !c.Rule.Kind.isPrepaid() {
		return 0
	}
	return MulDiv(n, c.Rule.Per, c.Limit)
}

// othersWait reports whether there may be calls that wait for other places than the charge's.
func (b *bucket) othersWait(c *Claim, now int64) bool {
	isPlace := c.At > now && !c.Dated
	if isPlace || b.lacks(c, -c.Burst, now, now) <= now {
		return false
	}
	x, y := b.in(c, now)
	return !c.Rule.Kind.isPrepaid() || x+min(y, 1) > c.ownDebt()
}

// subtract gives back what the bucket has not regained since the charge, and reports whether there is any. After a later lease the
// bucket's time is up to a lease ahead, which it cannot tell; so a lease more counts as regained. While others wait, nothing goes back:
// their places stay, and the bucket would have run over meanwhile.
func (b *bucket) subtract(c *Claim, n, now int64) bool {
	extra, _ := c.Price(n)
	x, y := b.in(c, now)
	refilled := max(0, now+c.Rule.Lease-c.At)
	if whole, parts := c.gain(x, y, -n); !c.Rule.Kind.isPrepaid() && whole+min(parts, 1) <= c.At {
		refilled = 0 // this was the last charge
	}
	if worth, _ := c.gain(extra, 0, n); refilled > worth || x < now || b.othersWait(c, now) {
		return false
	}
	x, y = c.gain(x-extra+refilled, y, -n)
	*b = bucket{x, y, c.Limit}
	return true
}

func (b *bucket) Expiry(*Rule) int64 { return b.full + min(b.parts, 1) }

func (b *bucket) Size() int64 { return 24 }

func (b *bucket) Grows(*Claim, int64) int64 { return 0 }
