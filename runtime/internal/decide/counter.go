package decide

import (
	"iter"
	"slices"
	"sort"
)

// counter is the permits of each slice of time in a window, and of the slice that the window has left in part. Apart from them
// it keeps the slices to come that calls wait for: to reserve one must not clear older ones, which count again if that is given
// back.
type counter struct {
	slices []int64 // slice n stands at n modulo their number
	newest int64
	used   int64
	ahead  []slice // in order
}

type slice struct{ number, permits int64 }

// slot returns where slice n stands.
func (s *counter) slot(n int64) *int64 {
	i := n % int64(len(s.slices))
	if i < 0 {
		i += int64(len(s.slices))
	}
	return &s.slices[i]
}

// move makes the slice that holds now the newest one, unless it is older.
func (s *counter) move(r *Rule, now int64) {
	size, present := r.Slices+1, now/r.Slice()
	if s.slices == nil || present >= s.newest+size {
		s.slices, s.newest, s.used = make([]int64, size), present, 0
	}
	for s.newest < present {
		s.newest++
		s.used -= *s.slot(s.newest)
		*s.slot(s.newest) = 0
	}
	for len(s.ahead) > 0 && s.ahead[0].number <= s.newest {
		s.add(s.ahead[0])
		s.ahead = slices.Delete(s.ahead, 0, 1)
	}
}

// add counts permits of a slice that is not to come.
func (s *counter) add(n slice) {
	if n.number > s.newest-int64(len(s.slices)) {
		permits := min(n.permits, mostUsed-s.used)
		*s.slot(n.number) += permits
		s.used += permits
	}
}

// all returns the slices by age, the oldest first.
func (s *counter) all() iter.Seq2[int64, int64] {
	return func(yield func(number, permits int64) bool) {
		for n := s.newest - int64(len(s.slices)) + 1; n <= s.newest; n++ {
			if !yield(n, *s.slot(n)) {
				return
			}
		}
		for _, n := range s.ahead {
			if !yield(n.number, n.permits) {
				return
			}
		}
	}
}

// last returns the newest slice, also of those to come.
func (s *counter) last() int64 {
	if len(s.ahead) > 0 {
		return s.ahead[len(s.ahead)-1].number
	}
	return s.newest
}

func (s *counter) Earliest(c *Claim, now int64) int64 {
	if s.slices == nil {
		return now
	}
	width := c.Rule.Slice()
	first := now / width
	excess := s.used + c.Cost - c.Limit
	for _, n := range s.ahead {
		excess += n.permits
	}
	if excess > 0 {
		for n, permits := range s.all() {
			if excess -= permits; excess <= 0 {
				first = max(first, n+c.Rule.Slices+1)
				break
			}
		}
	}
	return max(now, first*width)
}

func (s *counter) Commit(c *Claim, now, at int64) (used int64) {
	s.move(c.Rule, now)
	n := slice{max(at/c.Rule.Slice(), s.newest), c.Cost}
	if n.number == s.newest {
		s.add(n)
	} else {
		i := s.search(n.number)
		if i == len(s.ahead) || s.ahead[i].number != n.number {
			s.ahead = slices.Insert(s.ahead, i, slice{number: n.number})
		}
		s.ahead[i].permits += min(n.permits, mostUsed-s.ahead[i].permits)
	}
	if len(s.ahead) == 0 {
		return s.used
	}
	for number, permits := range s.all() {
		if number >= s.last()-c.Rule.Slices {
			used += permits
		}
	}
	return used
}

// search returns how many slices to come are before slice n.
func (s *counter) search(n int64) int {
	return sort.Search(len(s.ahead), func(i int) bool { return s.ahead[i].number >= n })
}

func (s *counter) Return(c *Claim, now int64) {
	s.move(c.Rule, now)
	n := c.At / c.Rule.Slice()
	if n <= s.newest {
		s.add(slice{n, -min(c.Cost, *s.slot(n))}) // after a reset there may be less
		return
	}
	i := s.search(n)
	if i == len(s.ahead) || s.ahead[i].number != n {
		return
	}
	if s.ahead[i].permits -= c.Cost; s.ahead[i].permits <= 0 {
		s.ahead = slices.Delete(s.ahead, i, i+1)
	}
}

func (s *counter) Expiry(r *Rule) int64 { return (s.last() + r.Slices + 1) * r.Slice() }
