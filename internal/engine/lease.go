package engine

// A lease is a number of permits that a process takes ahead and hands out itself until the lease ends. The permits are checked at the start of
// the lease, with all later charges counted, and recorded at its end. So whenever the process hands them out, no span of a sliding window has
// more permits than the limit, and no span of a bucket has more than the burst and what the bucket gains in that span. A fixed or calendar
// window is charged at the start of the lease, and the lease ends no later than the window.

// lease takes permits ahead for a call that is admitted: up to Ahead, and up to half of what each rule has left, but at least the call's cost.
// The verdict says how many, and when the lease ends.
func (call *Call) lease(cells []*Cell, v *Verdict) {
	v.Taken, v.At = call.Ahead, v.Now+call.Lease
	for i := range call.Claims {
		c := &call.Claims[i]
		s := cells[i].State(c.Rule)
		v.Taken = min(v.Taken, (s.Room(c, v.Now)+1)/2)
		if w, ok := s.(*windows); ok {
			v.At = min(v.At, w.present(c, v.Now).stop)
		}
	}
	v.Taken = max(v.Taken, call.Claims[0].Cost)
	for i := range call.Claims {
		c, now, at := &call.Claims[i], v.Now, v.At
		s := cells[i].State(c.Rule)
		switch s.(type) {
		case *windows:
			at = now
		case *bucket:
			now = at // it gains nothing of these permits before
		}
		c.Charged, c.At, c.Dated = v.Taken, at, true
		s.Commit(c, v.Taken, now, at) // may record another time
	}
}
