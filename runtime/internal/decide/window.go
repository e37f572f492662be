package decide

import "slices"

// windows is the open window of a fixed or calendar rule, which takes permits; before it, while calls wait for a window to
// come, those that are still to end.
type windows struct {
	window
	before []window
}

type window struct{ start, stop, used int64 }

// open returns the window that a charge at a time opens.
func open(r *Rule, at int64) window {
	if r.Kind == Calendar {
		start, stop := r.Schedule.Window(at)
		return window{start: start, stop: stop}
	}
	return window{start: at, stop: at + r.Per}
}

func (w *windows) Earliest(c *Claim, now int64) int64 {
	switch {
	case now >= w.stop:
		return now
	case w.used+c.Cost > c.Limit:
		return w.stop
	default:
		return max(now, w.start)
	}
}

func (w *windows) Commit(c *Claim, now, at int64) (used int64) {
	switch {
	case at >= w.stop:
		w.before = slices.DeleteFunc(append(w.before, w.window), func(w window) bool { return w.stop <= now })
		w.window = open(c.Rule, at)
	case at < w.start:
		return w.insert(c, at)
	}
	w.used += c.Cost
	return w.used
}

// insert charges a trigger, which does not ask whether a window to come is open already.
func (w *windows) insert(c *Claim, at int64) (used int64) {
	held := w.holds(at)
	if held == nil {
		i := 0
		for i < len(w.before) && w.before[i].start < at {
			i++
		}
		w.before = slices.Insert(w.before, i, open(c.Rule, at))
		held = &w.before[i]
	}
	held.used += c.Cost
	return held.used
}

// holds returns the window that took what was charged at t, or nil. One that was opened before one to come may reach into it.
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

func (w *windows) Expiry(*Rule) int64 { return w.stop }
