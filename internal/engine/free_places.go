package engine

import "math"

// The free places of a sliding window are permits of its list. An interval has all permits of its times, except of the first: some of those
// may belong to calls.

// span returns the indexes in the list at which an interval begins and ends. The first permits of an interval may have left the list: the begin
// may be negative. If all its permits have left, span returns equal indexes. A trigger removes permits of later times. A clock that is set back
// makes times later again whose permits have left.
func (s *slidingWindow) span(i interval) (from, to int) {
	to = s.times.search(i.at + 1)
	if to == 0 || s.times.at(to-1) != i.at {
		return to, to
	}
	return to - int(i.permits), to
}

func (s *slidingWindow) isLastCharge(c *Claim, _, _ int64) bool {
	n := s.times.len()
	return n == 0 || s.times.at(n-1) <= c.At
}

func (s *slidingWindow) interval(c *Claim, n, _ int64) interval {
	return interval{at: c.At, permits: min(n, int64(s.times.search(c.At+1)-s.times.search(c.At)))}
}

func (s *slidingWindow) touch(_ *Claim, a, b interval) bool {
	first, end := s.span(a)
	begin, last := s.span(b)
	return first < end && begin < last && begin <= end
}

func (s *slidingWindow) isLastInterval(_ *Claim, i interval, _ int64) bool {
	_, end := s.span(i)
	return end == s.times.len()
}

func (s *slidingWindow) pop(_ *Claim, n, _ int64) { s.times.n -= min(s.times.n, int(n)) }

func (s *slidingWindow) reach(_ *Claim, from int64) int64 { return from }

// placeIn looks for as many permits of one time as the claim needs. If they had different times, one of them would move.
func (s *slidingWindow) placeIn(c *Claim, i interval, from int64) (left, at int64, ok bool) {
	begin, end := s.span(i)
	k := max(0, begin, s.times.search(from))
	for looks := 0; looks < maxLooks && k+int(c.Cost) <= end; looks++ {
		at = s.times.at(k + int(c.Cost) - 1)
		if s.times.at(k) == at {
			return int64(end - k), at, true
		}
		k = s.times.search(at)
	}
	return 0, 0, false
}

func (s *slidingWindow) without(_ *Claim, i interval, n int64) interval {
	_, end := s.span(i)
	if end -= int(n); end <= 0 || n >= i.permits {
		return interval{}
	}
	return interval{at: s.times.at(end - 1), permits: i.permits - n}
}

// The places of a bucket follow each other on the scale of the time at which the bucket is full again: a place of n permits is as long as
// the bucket takes to gain them. A call can use n permits of an interval as if the bucket were full at their begin, with nothing later.

// steps returns the smallest n for which after(whole, parts, n) is not before a time.
func (c *Claim) steps(whole, parts, at int64) int64 {
	n := int64(math.Floor((float64(at-1-whole)*float64(c.Limit) - float64(parts)) / float64(c.Rule.Per)))
	for range 2 { // the estimate is at most two too small
		if c.after(whole, parts, n) < at {
			n++
		}
	}
	return n
}

// after returns when the bucket has gained n permits since whole + parts/limit.
func (c *Claim) after(whole, parts, n int64) int64 {
	whole, parts = c.gain(whole, parts, n)
	return whole + min(parts, 1)
}

// isLastCharge counts back from the time at which the bucket is full to its latest place. After a change of the limit this count may end too early.
// Then the claim's place must not be before last either.
func (b *bucket) isLastCharge(c *Claim, n, _ int64) bool {
	own := b.own(c)
	extra, _ := c.Price(n)
	return own.after(b.full-extra, b.parts, c.needed(n)-n) <= c.At && (b.change().oldFull == longAgo || b.last <= c.At)
}

// interval counts back from the latest place to the exact time of the claim's place. If the limit has changed since, this does not find that time;
// then the claim's time serves, which is rounded up. A debt keeps its time when the limit changes, so its place does not become free.
func (b *bucket) interval(c *Claim, n, _ int64) interval {
	own := b.own(c)
	if own.Limit != c.Limit && c.Rule.Kind.isPrepaid() {
		return interval{}
	}
	full, parts := b.full, b.parts
	x, y := own.gain(full, parts, c.needed(n)-n)
	k := own.steps(x, y, c.At)
	if own.after(x, y, k) == c.At {
		full, parts = own.gain(full, parts, k)
	} else {
		full, parts = own.gain(c.At, 0, n-c.needed(n))
	}
	return interval{full, parts, n, own.Limit}
}

func (b *bucket) touch(c *Claim, x, y interval) bool {
	own := b.own(c)
	full, parts := own.gain(y.at, y.parts, -y.permits)
	return x.limit == y.limit && x.limit == own.Limit && (full < x.at || full == x.at && parts <= x.parts)
}

// isLastInterval is also true if the bucket has become unused: the time of the interval is over.
func (b *bucket) isLastInterval(_ *Claim, i interval, _ int64) bool {
	return b.full == longAgo || i.limit == b.limit && (i.at > b.full || i.at == b.full && i.parts >= b.parts)
}

func (b *bucket) pop(c *Claim, n, now int64) {
	latest := Claim{Ask: Ask{Rule: c.Rule, Limit: b.limit, Burst: c.Burst}, Answer: Answer{At: max(now+1, b.last)}}
	b.subtract(&latest, n, now)
}

func (b *bucket) reach(c *Claim, from int64) int64 {
	at, _ := c.gain(from-1, 0, c.Cost-c.needed(c.Cost))
	return at
}

// placeIn returns no place before cut: the bucket gained what its permits need at another limit.
func (b *bucket) placeIn(c *Claim, i interval, from int64) (left, at int64, ok bool) {
	if i.limit != c.Limit {
		return 0, 0, false
	}
	x, y := c.gain(i.at, i.parts, c.needed(c.Cost)-i.permits)
	skip := max(0, c.steps(x, y, max(from, b.change().cut)))
	return i.permits - skip, c.after(x, y, skip), skip+c.Cost <= i.permits
}

func (b *bucket) without(c *Claim, i interval, n int64) interval {
	full, parts := c.gain(i.at, i.parts, -n)
	return interval{full, parts, i.permits - n, i.limit}
}
