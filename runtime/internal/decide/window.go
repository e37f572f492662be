package decide

import "slices"

// windows is the open window of a fixed or calendar rule, which takes permits; before it, while calls wait for a window to
// come, those that are still to end.
type windows struct {
	window
	before []window
}

type window struct{ start, stop, used int64 }

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
	if at >= w.stop {
		w.before = slices.DeleteFunc(append(w.before, w.window), func(w window) bool { return w.stop <= now })
		w.window = window{start: at, stop: at + c.Rule.Per}
		if c.Rule.Kind == Calendar {
			w.start, w.stop = c.Rule.Schedule.Window(at)
		}
	}
	w.used += c.Cost
	return w.used
}

func (w *windows) Return(c *Claim, now int64) {
	w.window.giveBack(c)
	for i := range w.before {
		w.before[i].giveBack(c)
	}
	for w.used == 0 && w.start > now {
		w.window = window{stop: longAgo}
		if last := len(w.before) - 1; last >= 0 {
			w.window, w.before = w.before[last], w.before[:last]
		}
	}
}

func (w *window) giveBack(c *Claim) {
	if w.start <= c.At && c.At < w.stop {
		w.used = max(0, w.used-c.Cost)
	}
}

func (w *windows) Expiry(*Rule) int64 { return w.stop }
