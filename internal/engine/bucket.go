package engine

import (
	"math"
	"math/bits"
)

// bucket is the generic cell rate algorithm (ITU-T I.371). Its state is the time at which the bucket is full again, which I.371 calls the
// theoretical arrival time: full + parts/limit microseconds. limit is that of the last ask. The fraction keeps rounding errors from adding
// up. last is the time of the last charge, or of the first ask at limit if that is later. A call that waits is charged at its place.
//
// Its numbers are those of its cell, and its change hangs on the cell's Rare.
type bucket Cell

// change is what a change of a bucket's limit leaves. A raise sets oldFull: when the bucket would have been full at the old limit. If the limit is
// lowered before oldFull, or changes while calls wait, cut is set: the present limit holds from cut on, and no call is admitted before. A charge
// before cut is not given back: the bucket may have gained its permits faster than at the limit of the charge, and faster than at the present limit.
type change struct{ cut, oldFull int64 } // longAgo if there was no such change

var noChange = change{longAgo, longAgo}

func (b *bucket) change() change {
	if b.Rare == nil || b.Rare.change == nil {
		return noChange
	}
	return *b.Rare.change
}

// endChange forgets a change that is over at a time.
func (b *bucket) endChange(at int64) {
	if b.Rare != nil && b.change().oldFull <= at {
		b.Rare.change = nil
	}
}

func bucketTerms(c *Claim, _, _ int64) Terms { return Terms{A: c.Rule.Per, B: c.Burst} }

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
// what it gains in maxDebt.
func (c *Claim) MostSettled() int64 {
	if c.Rule.Kind.Row().IsBucket {
		return c.Burst + c.debt(maxDebt) + 1
	}
	return math.MaxInt64
}

// Excess returns how many of n permits not to charge, if a debt of all of them would last d microseconds too long. It rounds up to whole permits.
// Without an anchor and an open window it returns n.
func (c *Claim) Excess(n, d int64) int64 {
	switch {
	case d <= 0:
		return 0
	case c.LacksAnchor():
		return n
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

// whole returns when the bucket is full, rounded up.
func (b *bucket) whole() int64 { return b.full + int64(min(b.parts, 1)) }

// memory is how long a full bucket is remembered, in microseconds: its limit may have been lowered before it was full.
const memory = 1_000_000

// at returns the bucket as an ask at the claim's limit finds it. If the bucket has another limit, it counts as having gained at the lower of
// the two rates since last. While calls wait for their places, it gains at the old rate. The conversion keeps the number of missing permits, but
// a debt of a Prepaid or a Warmup keeps its time.
func (b *bucket) at(c *Claim, now int64) *bucket {
	if b.limit == c.Limit || b.limit == 0 {
		return b
	}
	return b.converted(c, now)
}

// converted returns a copy of the bucket for the claim's limit, which is another than the bucket's. See at.
func (b *bucket) converted(c *Claim, now int64) *bucket {
	limit := b.limit
	from, whole, parts := b.last, b.whole(), int64(0)
	if c.Limit > limit || whole+memory <= now {
		from = max(from, now)
	}
	if c.Rule.Kind.isPrepaid() {
		stored, rest := mulDiv(c.Burst, c.Rule.Per, 0, limit)
		from = max(from, b.change().cut, b.full-stored+min(max(0, b.parts-rest), 1)) // the end of its debt, also for an earlier, smaller burst
	}
	if whole > from {
		whole, parts = mulDiv(b.full-from, limit, b.parts, c.Limit)
		whole += from
	}
	a := &bucket{whole, max(b.last, now), parts, c.Limit, b.Rare}
	if c.Rule.Kind == Warmup { // all its missing permits are a debt
		return a
	}
	x := b.change()
	cuts := from > now || c.Limit < limit && x.oldFull > now
	if cuts {
		x.cut = max(from, now)
	}
	if cuts || c.Limit > limit {
		x.oldFull = max(x.oldFull, b.whole())
		a.Rare = b.Rare.with(x)
	}
	return a
}

// with returns a copy that has another change. A peek must not change x itself.
func (x *Rare) with(other change) *Rare {
	copied := Rare{Until: longAgo}
	if x != nil {
		copied = *x
	}
	copied.change = &other
	return &copied
}

// longest is the longest time that a bucket may take to fill: a hundred years, in microseconds.
const longest = 36600 * 24 * 3600 * 1_000_000

// MulDiv returns a*b/c, rounded up, but at most longest, which is 3.2*10^15. The product may have more bits than an int64.
func MulDiv(a, b, c int64) int64 {
	quotient, rest := mulDiv(a, b, 0, c)
	return quotient + min(rest, 1)
}

// mulDiv returns the quotient and the rest of (a*b + more)/c. Instead of a quotient above longest it returns longest.
func mulDiv(a, b, more, c int64) (quotient, rest int64) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	low, carry := bits.Add64(low, uint64(more), 0)
	if high += carry; high >= uint64(c) {
		return longest, 0
	}
	whole, part := bits.Div64(high, low, uint64(c))
	if whole >= longest {
		return longest, 0
	}
	return int64(whole), int64(part)
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

// lacks returns the first time at which the bucket is as full as needed says: see [Claim.needed]. That may be before now.
func (b *bucket) lacks(c *Claim, needed, now int64) int64 {
	a := b.at(c, now)
	x, y := a.full, a.parts
	if x < now {
		x, y = now, 0
	}
	x, y = c.gain(x, y, needed)
	return max(x+min(y, 1), a.change().cut)
}

func (b *bucket) Earliest(c *Claim, n, now, from int64) int64 {
	return max(from, b.lacks(c, c.needed(n), now))
}

// Room is at least -MaxBucketLimit, however large the debt is.
func (b *bucket) Room(c *Claim, now int64) int64 {
	b = b.at(c, now)
	if c.Burst == 0 { // the bucket stores no permits: either it admits the next call, or it does not
		if b.lacks(c, 0, now) > now {
			return 0
		}
		return 1
	}
	room := c.Burst
	if b.full >= now {
		missing, rest := mulDiv(b.full-now, c.Limit, b.parts, c.Rule.Per)
		room = max(room-missing-min(rest, 1), -MaxBucketLimit)
	}
	if b.change().cut > now {
		room = min(room, 0)
	}
	return room
}

func (b *bucket) Full(c *Claim, now int64) int64 { return b.lacks(c, 0, now) }

func (b *bucket) More(c *Claim, room, now int64) int64 {
	if at := b.lacks(c, c.needed(1), now); at > now && c.Rule.Kind.isPrepaid() {
		return at
	}
	return max(now, b.lacks(c, min(0, room+1-c.Burst), now))
}

// Reserves is true only for the time at which the bucket itself would admit the claim. If another rule of the call needs a later place, the
// bucket must not keep it: that would delay everybody who shares the bucket.
func (b *bucket) Reserves(c *Claim, now, at int64) bool { return b.Earliest(c, c.Cost, now, now) == at }

// Commit charges a call that waits in the same way as one that does not: its place is the time at which the bucket has refilled enough.
func (b *bucket) Commit(c *Claim, n, now, at int64) bool {
	*b = *b.at(c, now)
	x, y := b.full, b.parts
	if x < now {
		x, y = now, 0
	}
	b.full, b.parts = c.gain(x, y, n)
	b.last, b.limit = max(b.last, at), c.Limit
	b.endChange(now)
	return true
}

func (b *bucket) Charge(c *Claim, n, now int64) {
	before := b.at(c, now).full
	b.Commit(c, n, now, now)
	empty, _ := c.gain(now, 0, c.Burst)
	most := max(before, empty+maxDebt)
	c.Delta = c.Excess(n, b.full-most)
	if b.full >= most {
		b.full, b.parts = most, 0
	}
}

// own returns the claim at the bucket's own limit. Giving back is no ask, so it does not change the rate.
func (b *bucket) own(c *Claim) Claim {
	own := *c
	if b.limit > 0 {
		own.Limit = b.limit
	}
	return own
}

func (b *bucket) GiveBack(c *Claim, n, now int64, _ bool) {
	if b.subtract(c, n, now) && max(b.whole(), b.change().oldFull) <= now {
		b.endChange(now)
		*b = bucket{full: longAgo, last: longAgo, Rare: b.Rare}
	}
}

// subtract gives n permits back, and reports whether it gave any. Without the charge, the bucket may have been full from the charge until last,
// and a full bucket gains nothing. So what the bucket gains in that time does not come back. If the limit has changed, the faster rate counts.
// The permits of a debt do not come back if the limit has changed, because the debt kept its time. Nor do they come back while calls wait,
// because a call before their places could go into any debt. After the last place nothing was charged, so the charge of that place comes back as
// a whole. last then becomes the place of a single permit, because no place that is left is later. Under a rule with a lease, last stays: the
// calls of a lease may run until it ends.
func (b *bucket) subtract(c *Claim, n, now int64) bool {
	own, isLast, lost := b.own(c), c.At > now && !c.Dated, int64(0)
	if b.full < now || c.Rule.Kind.isPrepaid() && (own.Limit != c.Limit || b.last > now && !isLast) {
		return false
	}
	extra, _ := c.Price(n)
	cut := b.change().cut
	worth, _ := own.gain(extra, 0, n)
	if !isLast {
		lost = MulDiv(max(0, b.last-c.At), max(own.Limit, c.Limit), own.Limit)
	}
	if lost > worth || !isLast && c.At < cut {
		return false
	}
	x, y := own.gain(b.full-extra+lost, b.parts, -n)
	if x < cut {
		x, y = cut, 0
	}
	b.full, b.parts = x, y
	if isLast && c.Rule.Lease == 0 {
		x, y = own.gain(x, y, c.needed(1)-1)
		b.last = min(b.last, max(now, cut, x+min(y, 1)))
	}
	return true
}

// give leaves the places of calls that wait. The bucket is empty at the last place, and stays so: only what was charged beyond that comes back. If a
// charge before the places came back, the bucket is not empty then, and nothing comes back. The end of a lease is no place: the bucket is seldom
// empty then.
func (b *bucket) give(c *Claim, n, now int64) {
	if c.At = now; b.last <= now {
		b.GiveBack(c, n, now, false)
		return
	}
	own := b.own(c)
	x, y := own.gain(b.last, 0, c.Burst)
	switch {
	case c.Rule.Lease > 0 && b.full < x-1: // x is rounded up
		b.GiveBack(c, n, now, false)
	case b.full > x || b.full == x && b.parts > y:
		c.At, c.Dated = b.last, true
		if b.subtract(c, n, now) && (b.full < x || b.full == x && b.parts < y) {
			b.full, b.parts = x, y
		}
	}
}

func (b *bucket) Expiry(*Rule) int64 { return max(b.whole(), b.change().oldFull) + memory }
