package engine

// A lease is permits that a process takes ahead, to hand them out itself until the lease ends. It is checked at its start, with all
// later charges counted, and recorded at its end. So no span of a sliding window holds more than the limit, and none of a bucket more
// than its burst and what it gains in that span, whenever the permits are handed out meanwhile. A window is charged at the start, and
// ends the lease with itself.

// leasable is a State whose permits can be taken ahead.
type leasable interface {
	// Lease charges n permits that are handed out from now to stop, and returns the time they are recorded at.
	Lease(c *Claim, n, now, stop int64) int64
}

func (s *slidingWindow) Lease(c *Claim, n, now, stop int64) int64 { return s.commit(c, n, now, stop) }

func (b *bucket) Lease(c *Claim, n, now, stop int64) int64 {
	b.add(c, n, now, stop)
	return stop
}

func (w *windows) Lease(c *Claim, n, now, _ int64) int64 {
	w.Commit(c, n, now, now)
	return now
}

// lease takes permits ahead for a call that is admitted: its cost, or more, up to half of what every rule has left. The verdict says
// how many, and when the lease ends.
func (call *Call) lease(cells []*Cell, v *Verdict) {
	v.Taken, v.At = call.Ahead, v.Now+call.Lease
	for i := range call.Claims {
		c, s := &call.Claims[i], cells[i].State
		v.Taken = min(v.Taken, (s.Room(c, v.Now)+1)/2)
		if w, ok := s.(*windows); ok {
			v.At = min(v.At, w.present(c.Rule, v.Now).stop)
		}
	}
	v.Taken = max(v.Taken, call.Claims[0].Cost)
	for i := range call.Claims {
		c := &call.Claims[i]
		c.Charged, c.Dated = v.Taken, true
		c.At = cells[i].State.(leasable).Lease(c, v.Taken, v.Now, v.At)
	}
}
