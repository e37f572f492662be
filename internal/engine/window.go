package engine

import (
	"slices"
	"strconv"
)

// windows are the windows of a fixed or calendar rule that have not ended, oldest first. The first is the present one, even if the clock was
// set back to before its start. The others belong to waiting calls. Windows do not overlap. A window that has ended
// stays the first until the next window begins, or until another is opened in between. So a charge of now is not taken for one of the next window,
// for which calls wait.
//
// The present window is in the numbers of the cell: full is its stop, or longAgo if there is none; last is its start, and parts what is used. The
// others hang on the cell's Rare.
type windows Cell

type window struct{ start, stop, used int64 }

// CellOfWindow returns the cell of a rule in whose present window some permits are used.
func CellOfWindow(stop, used int64) *Cell { return &Cell{full: stop, last: longAgo, parts: used} }

// ahead returns the windows after the present one.
func (w *windows) ahead() []window {
	if w.Rare == nil || w.Rare.ahead == nil {
		return nil
	}
	return *w.Rare.ahead
}

func (w *windows) len() int {
	if w.full == longAgo {
		return 0
	}
	return 1 + len(w.ahead())
}

func (w *windows) at(i int) window {
	if i == 0 {
		return window{w.last, w.full, w.parts}
	}
	return w.ahead()[i-1]
}

func (w *windows) set(i int, x window) {
	if i == 0 {
		w.last, w.full, w.parts = x.start, x.stop, x.used
		return
	}
	w.ahead()[i-1] = x
}

// insert inserts a window after the present one. If it overlaps a neighbour, as by another anchor, it becomes shorter.
func (w *windows) insert(i int, x window) {
	x.start = max(x.start, w.at(i-1).stop)
	if i < w.len() {
		x.stop = min(x.stop, w.at(i).start)
	}
	list := slices.Insert(w.ahead(), i-1, x)
	(*Cell)(w).rare().ahead = &list
}

func (w *windows) remove(i int) {
	list := w.ahead()
	switch {
	case len(list) == 0:
		w.set(0, window{longAgo, longAgo, 0})
		return
	case i == 0:
		w.set(0, list[0])
	default:
		i--
	}
	*w.Rare.ahead = slices.Delete(list, i, i+1)
}

func periodTerms(c *Claim, _, _ int64) Terms { return Terms{A: c.Rule.Per} }

// maxAhead bounds how many windows after the present one a state may have. A call that has to wait for a later one asks again.
const maxAhead = 64

// longestWindow is no shorter than any calendar window.
const longestWindow = 3660 * day

// calendarTerms are the start and stop of the present window, and the stops of the next ones.
func calendarTerms(c *Claim, now, until int64) Terms {
	start, stop := c.Bounds(now)
	t := Terms{A: longestWindow, Text: appendTimes(nil, start, stop)}
	for n := 0; stop <= until && n < maxAhead; n++ {
		stop = c.boundAfter(stop)
		t.Text = appendTimes(t.Text, stop)
	}
	return t
}

// appendTimes appends times to a text, each with a space after it.
func appendTimes(text []byte, times ...int64) []byte {
	for _, t := range times {
		text = append(strconv.AppendInt(text, t, 10), ' ')
	}
	return text
}

// Bounds returns the calendar window of the claim that holds a time.
func (c *Claim) Bounds(t int64) (start, stop int64) {
	if r := c.Rule; r.Schedule != nil {
		return r.Schedule.Window(t)
	}
	return c.Rule.Every.Window(c.Anchor, t)
}

// boundAfter returns when the calendar window of the claim ends that holds a time.
func (c *Claim) boundAfter(t int64) int64 {
	if c.Rule.Schedule != nil {
		return c.Rule.Schedule.After(t)
	}
	_, stop := c.Bounds(t)
	return stop
}

// mostUsed bounds the permits in a count. Only a Trigger, which admits any cost, gets that far.
const mostUsed = 1 << 51

// open returns the window that a charge at a time opens.
func open(c *Claim, at int64) window {
	if c.Rule.Kind == FixedWindow {
		return window{start: at, stop: at + c.Rule.Per}
	}
	start, stop := c.Bounds(at)
	return window{start: start, stop: stop}
}

// windowFor returns the index of the window for a charge at a time from now on, and true. If there is none, it returns the index at which to insert a
// new one, and false.
func (w *windows) windowFor(c *Claim, at int64) (int, bool) {
	for i := range w.len() {
		if x := w.at(i); at < x.stop {
			return i, i == 0 || x.contains(c, at)
		}
	}
	return w.len(), false
}

// contains reports whether a window takes a charge at a time before its stop. A fixed window that would overlap the next one is not opened: the
// next one takes the charge, and begins earlier.
func (w window) contains(c *Claim, at int64) bool {
	return w.start <= at || c.Rule.Kind == FixedWindow && w.start < at+c.Rule.Per
}

// Earliest returns the first time at which a window has room. A later call may be admitted to an earlier window. That delays no call that
// waits for a later window.
func (w *windows) Earliest(c *Claim, n, _, from int64) int64 {
	for i, found := w.windowFor(c, from); found && w.at(i).used+n > c.Limit; i++ {
		from = w.at(i).stop
		found = i+1 < w.len() && w.at(i+1).contains(c, from)
	}
	return from
}

// present returns the window for a charge now, or the one that the charge would open.
func (w *windows) present(c *Claim, now int64) window {
	i, found := w.windowFor(c, now)
	if found {
		return w.at(i)
	}
	x := open(c, now)
	if c.Rule.Kind == Anchored { // the window before it may have ended now, by another anchor
		x.start = now
	}
	if i < w.len() {
		x.stop = min(x.stop, w.at(i).start)
	}
	return x
}

func (w *windows) Room(c *Claim, now int64) int64 { return c.Limit - w.present(c, now).used }

func (w *windows) Full(_ *Claim, now int64) int64 {
	full := now
	for i := range w.len() {
		if x := w.at(i); x.used > 0 {
			full = max(full, x.stop)
		}
	}
	return full
}

func (w *windows) More(c *Claim, room, now int64) int64 { return moreByLimit(w, c, room, now) }

// Reserves is false if too many windows would be open.
func (w *windows) Reserves(c *Claim, now, at int64) bool {
	if i, found := w.windowFor(c, at); found {
		return w.at(i).used+c.Cost <= c.Limit
	}
	next, found := w.windowFor(c, now)
	ahead := w.len() - next
	if found {
		ahead--
	}
	return ahead < maxAhead
}

func (w *windows) Commit(c *Claim, n, now, at int64) bool {
	i, found := w.windowFor(c, now)
	for ; i > 1 || found && i > 0; i-- {
		w.remove(0) // it has ended
	}
	if !found { // the first window of the list must be the present one
		present := w.present(c, now)
		if c.Rule.Kind == FixedWindow && at > now {
			present.stop = min(present.stop, at)
		}
		i = 0
		w.set(i, present)
	}
	if at > now {
		if i, found = w.windowFor(c, at); !found {
			w.insert(i, open(c, at))
		}
	}
	x := w.at(i)
	x.start = min(x.start, at)
	x.used = min(x.used+min(n, mostUsed), mostUsed)
	w.set(i, x)
	return true
}

// drop removes the windows that have ended, but leaves one of them before a window that has not begun.
func (w *windows) drop(now int64) {
	for w.len() > 0 && w.full <= now && (w.len() == 1 || w.at(1).start <= now) {
		w.remove(0)
	}
}

// Charge takes nothing if it would have to open a window without an anchor.
func (w *windows) Charge(c *Claim, n, now int64) {
	if _, found := w.windowFor(c, now); !found && c.LacksAnchor() {
		c.Delta = n
		return
	}
	w.Commit(c, n, now, now)
}

// GiveBack takes back permits even if calls wait for a later window.
func (w *windows) GiveBack(c *Claim, n, now int64, rollback bool) {
	if w.Expiry(c.Rule) <= now {
		return
	}
	w.drop(now)
	i := w.index(func(x window) bool { return x.start <= c.At && c.At < x.stop && now < x.stop })
	if i < 0 {
		return
	}
	x := w.at(i)
	x.used = max(0, x.used-n)
	closes := x.used == 0 && (x.start > now || rollback && x.start == c.At)
	if closes && i == 0 { // it ends, and stays the first until the next one begins
		x.start, x.stop = min(x.start, now), now
	}
	if w.set(i, x); closes && i > 0 {
		w.remove(i)
	}
	w.drop(now)
}

// index returns the index of the first window for which is returns true, or -1.
func (w *windows) index(is func(window) bool) int {
	for i := range w.len() {
		if is(w.at(i)) {
			return i
		}
	}
	return -1
}

func (w *windows) Expiry(*Rule) int64 {
	if list := w.ahead(); len(list) > 0 {
		return list[len(list)-1].stop
	}
	return w.full
}
