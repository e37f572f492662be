package decide

import "slices"

// windows is the last window of a fixed or calendar rule; before it, while calls wait for a window to come, those that are still
// to end. They do not overlap.
type windows struct {
	window
	before []window
}

type window struct{ start, stop, used int64 }

// mostUsed is from where on permits are not counted any more. Only triggers, which admit any cost, come so far.
const mostUsed = 1 << 56

// take counts permits, and returns what is used then.
func (w *window) take(permits int64) int64 {
	w.used += min(permits, mostUsed-w.used)
	return w.used
}

// open returns the window that a charge at a time opens.
func open(r *Rule, at int64) window {
	if r.Kind == Calendar {
		start, stop := r.Schedule.Window(at)
		return window{start: start, stop: stop}
	}
	return window{start: at, stop: at + r.Per}
}

// Earliest returns the end of the last window that is too full: before such a one, a call would pass those who wait for it.
func (w *windows) Earliest(c *Claim, now int64) int64 {
	if w.used+c.Cost > c.Limit {
		return max(now, w.stop)
	}
	for _, before := range slices.Backward(w.before) {
		if before.used+c.Cost > c.Limit {
			return max(now, before.stop)
		}
	}
	return now
}

func (w *windows) Commit(c *Claim, now, at int64) (used int64) {
	switch {
	case at >= w.stop:
		w.before = slices.DeleteFunc(append(w.before, w.window), func(w window) bool { return w.stop <= now })
		w.window = open(c.Rule, at)
	case at < w.start:
		return w.insert(c, at)
	}
	return w.take(c.Cost)
}

// insert charges the window that holds a time before the last one. A fixed window that would reach into the next one becomes a
// part of that, which begins earlier then.
func (w *windows) insert(c *Claim, at int64) (used int64) {
	held := w.holds(at)
	if held == nil {
		i, next := 0, &w.window
		for i < len(w.before) && w.before[i].start < at {
			i++
		}
		if i < len(w.before) {
			next = &w.before[i]
		}
		if opened := open(c.Rule, at); c.Rule.Kind == Fixed && opened.stop > next.start {
			next.start, held = at, next
		} else {
			w.before = slices.Insert(w.before, i, opened)
			held = &w.before[i]
		}
	}
	return held.take(c.Cost)
}

// holds returns the window that took what was charged at t, or nil.
func (w *windows) holds(t int64) *window {
	if w.start <= t && t < w.stop {
		return &w.window
	}
	for i, before := range slices.Backward(w.before) {
		if before.start <= t && t < before.stop {
			return &w.before[i]
		}
	}
	return nil
}

func (w *windows) Return(c *Claim, now int64) {
	held := w.holds(c.At)
	if held == nil {
		return
	}
	held.used = max(0, held.used-c.Cost)
	w.before = slices.DeleteFunc(w.before, func(w window) bool { return w.used == 0 && w.start > now })
	if w.used == 0 && w.start > now {
		w.window = window{stop: longAgo}
		if last := len(w.before) - 1; last >= 0 {
			w.window, w.before = w.before[last], w.before[:last]
		}
	}
}

// Close closes the window that a claim opened which has been returned, if s has such a one and nothing else is in it.
func Close(s State, c *Claim) {
	w, ok := s.(*windows)
	if !ok {
		return
	}
	if held := w.holds(c.At); held != nil && held.start == c.At && held.used == 0 {
		held.stop = held.start
	}
}

func (w *windows) Expiry(*Rule) int64 { return w.stop }
