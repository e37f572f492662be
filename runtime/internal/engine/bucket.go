package engine

import (
	"fmt"
	"math"
	"math/bits"
	"sort"
)

// bucket is the generic cell rate algorithm (ITU-T I.371). Its state is the time at which the bucket is full again, which I.371 calls the
// theoretical arrival time: full + parts/limit microseconds. limit is that of the last charge. The fraction keeps rounding errors from adding
// up.
type bucket struct{ full, parts, limit int64 }

func newBucket(*Rule) State { return &bucket{full: longAgo} }

// bucketTerms are the period and the burst. A claim that gives permits back also has the price of its charge, the time of ownDebt, and the
// length of a lease.
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

// maxDebt is how long a debt lasts at most, in microseconds. A call of a Prepaid or a Warmup goes into debt, and so does a charge beyond the
// limit.
const maxDebt = 24 * 3600 * 1_000_000

// mostByDebt is the largest cost whose debt lasts no longer than maxDebt. One permit is always admitted.
func mostByDebt(c *Claim) (int64, string) {
	return max(1, c.debt(maxDebt-(c.Rule.Warmup+1)/2)), "largest debt" // cold permits make the debt longer by up to half of Warmup
}

// debt returns how many permits a bucket gains in d microseconds. d is at most maxDebt.
func (c *Claim) debt(d int64) int64 { return min(d*c.Limit/c.Rule.Per, MaxBucketLimit) }

// MostSettled returns the largest number of permits that a settlement can add to the charge of the claim. In a bucket that is its burst, and
// what it gains in maxDebt. In a sliding window that can hold more than MaxTimesCost, a call with its settlement takes no more than that.
func (c *Claim) MostSettled() int64 {
	switch k := c.Rule.Kind; {
	case k.Row().IsBucket:
		return c.Burst + c.debt(maxDebt) + 1
	case k.KeepsTimes() && c.Limit > MaxTimesCost:
		return max(0, MaxTimesCost-c.Charged)
	}
	return math.MaxInt64
}

// Left returns how many of n permits to leave out of a debt that would last d microseconds too long with all of them. It rounds up to whole
// permits.
func (c *Claim) Left(n, d int64) int64 {
	if d <= 0 {
		return 0
	}
	return min(n, MulDiv(d, c.Limit, c.Rule.Per))
}

// isPrepaid reports whether a call may run before the bucket has its permits. The next call then waits until the bucket has gained them.
func (k Kind) isPrepaid() bool { return k == Prepaid || k == Warmup }

// needed returns how full the bucket must be for n permits to pass: minus the number of permits that may be missing.
func (c *Claim) needed(n int64) int64 {
	if c.Rule.Kind.isPrepaid() {
		return -c.Burst
	}
	return n - c.Burst
}

// in returns when the bucket is full again at the claim's limit. A change of the limit leaves the number of missing permits as it is, but
// debts keep their time. The debt of a Prepaid bucket is what it lacks beyond its burst; the debt of a Warmup is all that it lacks.
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

// longest is the longest time that a bucket may take to fill: a hundred years, in microseconds.
const longest = 36600 * 24 * 3600 * 1_000_000

// MulDiv returns a*b/c, rounded up, but at most longest, which is 3.2*10^15. The product may have more bits than an int64.
func MulDiv(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return longest
	}
	quotient, rest := bits.Div64(high, low, uint64(c))
	return int64(min(quotient+min(rest, 1), longest))
}

// gain adds the time in which a bucket gains n permits to the time whole + parts/limit. n may be negative.
func (c *Claim) gain(whole, parts, n int64) (int64, int64) {
	limit, per := c.Limit, c.Rule.Per
	whole += n * (per / limit)
	parts += n * (per % limit)
	if 0 <= parts && parts < limit { // the usual case; it saves a slow division
		return whole, parts
	}
	carry := parts / limit
	if parts %= limit; parts < 0 {
		parts += limit
		carry--
	}
	return whole + carry, parts
}

// lacks returns the first time, not before from, at which the bucket is as full as needed says: see [Claim.needed].
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
	if c.Burst == 0 { // the bucket stores no permits: either it admits the next call, or it does not
		if b.lacks(c, 0, now, now) > now {
			return 0
		}
		return 1
	}
	return int64(sort.Search(int(c.Burst), func(i int) bool { return b.lacks(c, int64(i)+1-c.Burst, now, now) > now }))
}

func (b *bucket) Full(c *Claim, now int64) int64 { return b.lacks(c, 0, now, now) }

// Reserves is true only for the time at which the bucket itself would admit the claim. If another rule of the call needs a later place, the
// bucket must not keep it: that would delay everybody who shares the bucket.
func (b *bucket) Reserves(c *Claim, now, at int64) bool { return b.Earliest(c, c.Cost, now, now) == at }

func (b *bucket) Commit(c *Claim, n, now, at int64) bool {
	b.add(c, n, now, now)
	return true
}

// add charges n permits, at from or later. A call that waits is charged in the same way: its place is the time at which the bucket has
// refilled enough.
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

// ownDebt is for giving back a charge of a Prepaid bucket. If the bucket is in debt beyond the time that ownDebt returns, other calls wait for
// their places. Without a burst this is the time when the charge is paid, because no later call runs before. With a burst later calls may
// run, and their debt looks like that of waiting calls. ownDebt then returns the same time if the rule lets calls wait. If it does not, no
// debt is that of a waiting call, and ownDebt returns never.
func (c *Claim) ownDebt() int64 {
	if c.Wait == 0 && c.Burst > 0 {
		return never
	}
	return c.At + c.Extra + MulDiv(c.Charged, c.Rule.Per, c.Limit)
}

// debtOf returns how long n permits of a place delay the next place.
func (c *Claim) debtOf(n int64) int64 {
	if !c.Rule.Kind.isPrepaid() {
		return 0
	}
	return MulDiv(n, c.Rule.Per, c.Limit)
}

// othersWait reports whether other calls may be waiting for places behind the charge.
func (b *bucket) othersWait(c *Claim, now int64) bool {
	isPlace := c.At > now && !c.Dated
	if isPlace || b.lacks(c, -c.Burst, now, now) <= now {
		return false
	}
	x, y := b.in(c, now)
	return !c.Rule.Kind.isPrepaid() || x+min(y, 1) > c.ownDebt()
}

// subtract gives back the permits that the bucket has not regained since the charge, and reports whether there are any. A later lease may have
// set the bucket's time ahead by the length of a lease. The bucket cannot know that, so it counts what it gains in that time as regained, too.
// While other calls wait, subtract gives nothing back: their places stay as they are, and meanwhile the bucket would have run over.
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
