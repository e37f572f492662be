package engine

// slidingCounter holds the number of permits in each slice of time in a window. That includes the slice that is only partly in the window. It
// is a sliding window of constant size that never admits more than the limit, but frees permits up to a slice late.
type slidingCounter struct {
	slices []int64 // see in
	newest int64   // number of the newest slice
	used   int64   // permits in all slices
}

func newSlidingCounter(r *Rule) State {
	return &slidingCounter{slices: make([]int64, r.Slices+1), newest: r.slice(longAgo)}
}

func sliceTerms(c *Claim, _, _ int64) Terms { return Terms{A: c.Rule.width(), B: c.Rule.Slices} }

// width returns the length of a slice.
func (r *Rule) width() int64 { return (r.Per + r.Slices - 1) / r.Slices }

// slice returns the number of the slice that contains a time. All of slice n has left the window at n times the width.
func (r *Rule) slice(at int64) int64 { return at/r.width() + r.Slices + 1 }

// in points to the permits in slice n. The slice that leaves the window when slice n begins has the same index. Slices long before 1970 have
// negative numbers.
func (s *slidingCounter) in(n int64) *int64 { return &s.slices[uint64(n)%uint64(len(s.slices))] }

// total returns the number of the present slice, and the permits that count now. If the clock was set back, the newest slice stays the present
// one.
func (s *slidingCounter) total(r *Rule, now int64) (present, used int64) {
	if present = max(r.slice(now), s.newest); present-s.newest > r.Slices {
		return present, 0
	}
	used = s.used
	for n := s.newest + 1; n <= present; n++ {
		used -= *s.in(n)
	}
	return present, used
}

func (s *slidingCounter) Earliest(c *Claim, n, now, from int64) int64 {
	present, used := s.total(c.Rule, now)
	excess := used + n - c.Limit
	if newest := *s.in(s.newest); used-newest < excess && excess <= used { // the oldest slices need not be read
		return max(from, s.newest*c.Rule.width())
	}
	for slice := present - c.Rule.Slices; excess > 0 && slice <= s.newest; slice++ {
		if excess -= *s.in(slice); excess <= 0 {
			return max(from, slice*c.Rule.width())
		}
	}
	return from
}

func (s *slidingCounter) Room(c *Claim, now int64) int64 {
	_, used := s.total(c.Rule, now)
	return c.Limit - used
}

func (s *slidingCounter) Full(c *Claim, now int64) int64 { return s.Earliest(c, c.Limit, now, now) }

func (s *slidingCounter) More(c *Claim, room, now int64) int64 { return moreByLimit(s, c, room, now) }

// Reserves is false for any later time: there are no future slices.
func (s *slidingCounter) Reserves(_ *Claim, now, at int64) bool { return at <= now }

func (s *slidingCounter) Commit(c *Claim, n, now, _ int64) bool {
	s.move(c.Rule, now)
	s.add(s.newest, min(n, mostUsed-s.used))
	return true
}

// move makes the slice that contains now the newest one, unless the clock was set back.
func (s *slidingCounter) move(r *Rule, now int64) {
	present, used := s.total(r, now)
	for n := max(s.newest+1, present-r.Slices); n <= present; n++ {
		*s.in(n) = 0
	}
	s.newest, s.used = present, used
}

// add adds permits to a slice. It takes off no more than the slice has, and returns how many it added.
func (s *slidingCounter) add(slice, n int64) int64 {
	n = max(n, -*s.in(slice)) // after a reset there may be fewer
	*s.in(slice) += n
	s.used += n
	return n
}

func (s *slidingCounter) Charge(c *Claim, n, now int64) { s.Commit(c, n, now, now) }

func (s *slidingCounter) GiveBack(c *Claim, n, now int64, _ bool) {
	present, used := s.total(c.Rule, now)
	if slice := c.Rule.slice(c.At); used > 0 && present-c.Rule.Slices <= slice && slice <= present {
		s.move(c.Rule, now)
		s.add(slice, -n)
	}
}

func (s *slidingCounter) give(c *Claim, n, now int64) {
	if _, used := s.total(c.Rule, now); used == 0 {
		return
	}
	s.move(c.Rule, now)
	for slice := s.newest; slice >= s.newest-c.Rule.Slices && n > 0; slice-- {
		n += s.add(slice, -n)
	}
}

func (s *slidingCounter) Expiry(r *Rule) int64 { return s.newest * r.width() }

// workOnSlices counts the slices that are read when some leave the window: 500 in a unit, as that is seldom.
func workOnSlices(c *Claim, _ int64) int64 { return c.Rule.Slices / 500 }
