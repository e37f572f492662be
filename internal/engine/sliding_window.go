package engine

import "strconv"

// slidingWindow is an exact sliding window. It holds the time of every permit, oldest first. Permits with a future time belong to waiting
// calls, and already count.
type slidingWindow struct{ times ring }

func newSlidingWindow(*Rule) State { return new(slidingWindow) }

// KeepsTimes reports whether a state of the kind holds the time of each permit, so that it grows with the charge.
func (k Kind) KeepsTimes() bool { return k == SlidingWindow }

// workOnTimes counts the permits that are written, 50 in a unit. If permits are given back, it counts the search for them, and the permits that a
// command compares, 128 in a unit: at most half the list.
func workOnTimes(c *Claim, n int64) int64 {
	if n < 0 {
		return 6 + min(c.Limit/2, maxSearched)/128
	}
	return n / 50
}

// slidingWindowTerms are the period, and the index of the permit that must leave the window before the cost fits. The index counts from the
// newest permit, which is -1.
func slidingWindowTerms(c *Claim, _, _ int64) Terms {
	return Terms{A: c.Rule.Per, Text: strconv.AppendInt(nil, c.Cost-c.Limit-1, 10)}
}

func (s *slidingWindow) Earliest(c *Claim, n, _, from int64) int64 {
	if i := s.times.len() - int(c.Limit-n) - 1; i >= 0 {
		return max(from, s.times.at(i)+c.Rule.Per)
	}
	return from
}

func (s *slidingWindow) Room(c *Claim, now int64) int64 {
	return c.Limit - int64(s.times.len()-s.times.search(now-c.Rule.Per+1))
}

func (s *slidingWindow) Full(c *Claim, now int64) int64 { return s.Earliest(c, c.Limit, now, now) }

func (s *slidingWindow) More(c *Claim, room, now int64) int64 { return moreByLimit(s, c, room, now) }

func (s *slidingWindow) Reserves(c *Claim, now, at int64) bool {
	return s.Earliest(c, c.Cost, now, at) == at
}

// maxMoved bounds how many later permits a charge is inserted before. If there are more, the charge is recorded at the time of the newest one.
const maxMoved = 64

func (s *slidingWindow) Commit(c *Claim, n, now, at int64) bool {
	if recorded := s.commit(c, n, now, at); recorded != at {
		c.At, c.Dated = recorded, true
	}
	return true
}

// commit charges n permits, and returns the time at which they are recorded.
func (s *slidingWindow) commit(c *Claim, n, now, at int64) int64 {
	n = min(n, c.Limit) // the cost of a Trigger has no bound
	size := s.times.len()
	if size > maxMoved && s.times.at(size-1-maxMoved) > at {
		at = s.times.at(size - 1)
	}
	s.times.insert(at, int(n))
	over := s.times.len() - int(c.Limit)
	if out := now - c.Rule.Per; over > 0 && c.Mode != Trigger && s.times.at(over-1) > out {
		over = s.times.search(out + 1) // the others still count if this charge is given back, or if the limit is raised
	}
	s.times.drop(over)
	return at
}

// Charge takes at most as many permits as the limit, and keeps at most MaxTimes, the newest ones. They may be more than the limit: other programs
// may have a higher one, and what a settlement takes may be given back.
func (s *slidingWindow) Charge(c *Claim, n, now int64) {
	charge := Claim{Ask: Ask{Rule: c.Rule, Limit: c.Limit}}
	s.Commit(&charge, n, now, now)
	s.times.drop(s.times.len() - MaxTimes)
	if charge.Dated {
		c.At, c.Dated = charge.At, true
	}
}

// maxSearched is how many permits a Redis command may compare.
const maxSearched = 10_000

// GiveBack gives back the oldest permits instead if more than maxSearched permits that count are earlier than the charge, and as many are later.
// So as many permits fit at once, and the permits of the charge stay until they leave the window. It does so, too, if it gives back more than
// maxSearched, and more than maxMoved are later.
func (s *slidingWindow) GiveBack(c *Claim, n, now int64, _ bool) {
	out := now - c.Rule.Per
	if c.At <= out {
		return
	}
	from, to, gone := s.times.search(c.At), s.times.search(c.At+1), s.times.search(out+1)
	later := s.times.len() - to
	n = min(n, int64(to-from))
	if n > maxSearched && later > maxMoved || min(later, from-gone) > maxSearched {
		s.times.drop(gone + int(n))
		return
	}
	if later > maxSearched {
		s.times.drop(gone)
		from -= gone
	}
	s.times.remove(from, int(n))
}

// maxPassed is how many places there may be after permits that are given back. If there are more, the oldest permits are given back instead.
const maxPassed = 1000

func (s *slidingWindow) give(c *Claim, n, now int64) {
	gone, stop := s.times.search(now-c.Rule.Per+1), s.times.search(now+1)
	n = min(n, int64(stop-gone))
	if s.times.len()-stop > maxPassed {
		s.times.drop(gone + int(n))
		return
	}
	s.times.remove(stop-int(n), int(n))
}

func (s *slidingWindow) Expiry(r *Rule) int64 {
	if n := s.times.len(); n > 0 {
		return s.times.at(n-1) + r.Per
	}
	return longAgo
}
