package decide

// counter is the permits of each slice of time in a window, and of the slice that the window has left in part.
type counter struct {
	slices []int64 // slice n stands at n modulo their number
	newest int64
	used   int64
}

// slot returns where slice n stands.
func (s *counter) slot(n int64) *int64 {
	i := n % int64(len(s.slices))
	if i < 0 {
		i += int64(len(s.slices))
	}
	return &s.slices[i]
}

// move makes the slice that holds t the newest one, unless it is older.
func (s *counter) move(c *Claim, t int64) {
	size := c.Rule.Slices + 1
	slice := t / c.Rule.Slice()
	if s.slices == nil || slice >= s.newest+size {
		*s = counter{slices: make([]int64, size), newest: slice}
	}
	for s.newest < slice {
		s.newest++
		s.used -= *s.slot(s.newest)
		*s.slot(s.newest) = 0
	}
}

func (s *counter) Earliest(c *Claim, now int64) int64 {
	if s.slices == nil {
		return now
	}
	size, width := c.Rule.Slices+1, c.Rule.Slice()
	slice := max(now/width, s.newest)
	excess := s.used + c.Cost - c.Limit
	for n := s.newest - size + 1; n <= s.newest; n++ {
		if excess <= 0 || n+size > slice {
			break
		}
		excess -= *s.slot(n)
	}
	for n := max(slice-size+1, s.newest-size+1); excess > 0 && n <= s.newest; n++ {
		if excess -= *s.slot(n); excess <= 0 {
			return max(now, (n+size)*width)
		}
	}
	return max(now, slice*width)
}

func (s *counter) Commit(c *Claim, _, at int64) (used int64) {
	s.move(c, at)
	*s.slot(s.newest) += c.Cost
	s.used += c.Cost
	return s.used
}

func (s *counter) Return(c *Claim, _ int64) {
	size, slice := int64(len(s.slices)), c.At/c.Rule.Slice()
	if slice <= s.newest && slice > s.newest-size {
		*s.slot(slice) -= c.Cost
		s.used -= c.Cost
	}
}

func (s *counter) Expiry(r *Rule) int64 { return (s.newest + r.Slices + 1) * r.Slice() }
