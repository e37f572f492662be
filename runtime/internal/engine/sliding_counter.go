package engine

// slidingCounter holds the number of permits in each slice of time in a window. That includes the slice that is only partly in the window. It
// is a sliding window of constant size that never admits more than the limit, but frees permits up to a slice late.
type slidingCounter struct {
	slices []int64 // slice n is at index n modulo the length
	newest int64   // number of the newest slice
	used   int64   // permits in all slices
}

func newSlidingCounter(r *Rule) State {
	return &slidingCounter{slices: make([]int64, r.Slices+1), newest: r.slice(longAgo)}
}

func sliceTerms(c *Claim, _, _ int64) Terms { return Terms{A: c.Rule.width(), B: c.Rule.Slices} }

// width returns the length of a slice.
func (r *Rule) width() int64 { return (r.Per + r.Slices - 1) / r.Slices }

// index returns where slice n is.
func (s *slidingCounter) index(n int64) int {
	i := n % int64(len(s.slices))
	if i < 0 { // before 1970
		i += int64(len(s.slices))
	}
	return int(i)
}

// next returns the index of the slice after the one at index i.
func (s *slidingCounter) next(i int) int {
	if i++; i < len(s.slices) {
		return i
	}
	return 0
}

// slice returns the number of the slice that contains a time.
func (r *Rule) slice(at int64) int64 {
	width := r.width()
	n := at / width
	if at%width < 0 {
		n--
	}
	return n
}

// total returns the number of the present slice, and the permits that count now. If the clock was set back, the newest slice stays the present
// one.
func (s *slidingCounter) total(r *Rule, now int64) (present, used int64) {
	if present = max(r.slice(now), s.newest); present-s.newest > r.Slices {
		return present, 0
	}
	used = s.used
	i := s.index(s.newest + 1)
	for n := s.newest + 1; n <= present; n++ {
		used -= s.slices[i]
		i = s.next(i)
	}
	return present, used
}

func (s *slidingCounter) Earliest(c *Claim, n, now, from int64) int64 {
	present, used := s.total(c.Rule, now)
	excess := used + n - c.Limit
	i := s.index(present - c.Rule.Slices)
	for slice := present - c.Rule.Slices; excess > 0 && slice <= s.newest; slice++ {
		if excess -= s.slices[i]; excess <= 0 {
			return max(from, (slice+c.Rule.Slices+1)*c.Rule.width())
		}
		i = s.next(i)
	}
	return from
}

func (s *slidingCounter) Room(c *Claim, now int64) int64 {
	_, used := s.total(c.Rule, now)
	return max(0, c.Limit-used)
}

func (s *slidingCounter) Full(c *Claim, now int64) int64 { return s.Earliest(c, c.Limit, now, now) }

// Reserves is false for any later time: there are no future slices.
func (s *slidingCounter) Reserves(_ *Claim, now, at int64) bool { return at <= now }

func (s *slidingCounter) Commit(c *Claim, n, now, _ int64) bool {
	s.move(c.Rule, now)
	n = min(n, mostUsed-s.used)
	s.slices[s.index(s.newest)] += n
	s.used += n
	return true
}

// move makes the slice that contains now the newest one, unless the clock was set back.
func (s *slidingCounter) move(r *Rule, now int64) {
	present, used := s.total(r, now)
	first := max(s.newest+1, present-r.Slices)
	i := s.index(first)
	for n := first; n <= present; n++ {
		s.slices[i] = 0
		i = s.next(i)
	}
	s.newest, s.used = present, used
}

func (s *slidingCounter) Charge(c *Claim, n, now int64) { s.Commit(c, n, now, now) }

func (s *slidingCounter) GiveBack(c *Claim, n, now int64, _ bool) {
	present, used := s.total(c.Rule, now)
	slice := c.Rule.slice(c.At)
	if used == 0 || slice < present-c.Rule.Slices || slice > present {
		return
	}
	s.move(c.Rule, now)
	i := s.index(slice)
	n = min(n, s.slices[i]) // after a reset there may be fewer
	s.slices[i] -= n
	s.used -= n
}

func (s *slidingCounter) give(c *Claim, n, now int64) {
	if _, used := s.total(c.Rule, now); used == 0 {
		return
	}
	s.move(c.Rule, now)
	for slice := s.newest; slice >= s.newest-c.Rule.Slices && n > 0; slice-- {
		i := s.index(slice)
		given := min(n, s.slices[i])
		s.slices[i] -= given
		s.used -= given
		n -= given
	}
}

func (s *slidingCounter) Expiry(r *Rule) int64 { return (s.newest + r.Slices + 1) * r.width() }

func (s *slidingCounter) Size() int64 { return 48 + 8*int64(len(s.slices)) }

func (s *slidingCounter) Grows(*Claim, int64) int64 { return 0 }
