package ratelimit

import (
	"context"
	"math"
	"slices"
	"sync"
)

// lines are the calls of a limiter that wait, in one line for each subject of a rule.
type lines struct {
	mu  sync.Mutex
	all map[lineName][]*waiter
}

type lineName struct{ rule, tag, subject string }

// waiter is a call in a line. The calls of a line are in the order of their places. Calls without a place are behind them, in the order in
// which they came. A call that a pause holds has given its place back, and keeps its position in the line.
type waiter struct {
	lines *lines
	line  lineName
	at    int64 // its first place
	place int64 // its place now
	holds bool  // a pause holds it
	due   bool  // its place has come, and it waits for calls with earlier places to go

	wake   context.CancelFunc // ends its sleep; nil while it is awake
	called bool               // it was woken while it was awake
}

// enter adds a call with a place to its line.
func (l *lines) enter(name lineName, at int64) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(&waiter{lines: l, line: name, at: at, place: at})
}

// enterHolding adds a call that a pause holds to its line. With behind it does so only if the pause holds other calls; otherwise it returns nil.
func (l *lines) enterHolding(name lineName, behind bool) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if behind && l.first(name) == nil {
		return nil
	}
	w := l.add(&waiter{lines: l, line: name, at: math.MaxInt64})
	w.hold()
	return w
}

// add adds a waiter. The caller holds the lock.
func (l *lines) add(w *waiter) *waiter {
	if l.all == nil {
		l.all = map[lineName][]*waiter{}
	}
	line := l.all[w.line]
	i := len(line)
	for i > 0 && line[i-1].at > w.at {
		i--
	}
	l.all[w.line] = slices.Insert(line, i, w)
	return w
}

// first returns the first call in a line that a pause holds, or nil. The caller holds the lock.
func (l *lines) first(name lineName) *waiter {
	line := l.all[name]
	if i := slices.IndexFunc(line, func(w *waiter) bool { return w.holds }); i >= 0 {
		return line[i]
	}
	return nil
}

// wake wakes all calls of a line.
func (l *lines) wake(name lineName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.all[name] {
		w.call()
	}
}

// call wakes the waiter, or keeps it from falling asleep. The caller holds the lock.
func (w *waiter) call() {
	if w.called = true; w.wake != nil {
		w.wake()
	}
}

// hold notes that a pause holds the call. The first such call wakes the others of the line, so that they give their places back. The caller
// holds the lock.
func (w *waiter) hold() {
	known := w.lines.first(w.line) != nil
	w.holds = true
	w.letGo()
	if known {
		return
	}
	for _, other := range w.lines.all[w.line] {
		if other != w {
			other.call()
		}
	}
}

// letGo wakes the calls whose places have come, so that they see whether this one is still before them. The caller holds the lock.
func (w *waiter) letGo() {
	for _, other := range w.lines.all[w.line] {
		if other.due {
			other.call()
		}
	}
}

// isBehind notes that the place of the call has come. It reports whether calls of the line with earlier places have not gone yet.
func (w *waiter) isBehind() bool {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	w.due = true
	for _, other := range w.lines.all[w.line] {
		if other == w {
			break
		}
		if !other.holds && other.place <= w.place {
			return true
		}
	}
	return false
}

// goOn notes that no pause holds the call any more, so the next one can ask.
func (w *waiter) goOn() {
	if w.holds {
		w.holds = false
		if next := w.lines.first(w.line); next != nil {
			next.call()
		}
	}
}

// leave removes the call from its line.
func (w *waiter) leave() {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	line := w.lines.all[w.line]
	line = slices.Delete(line, slices.Index(line, w), slices.Index(line, w)+1)
	if w.lines.all[w.line] = line; len(line) == 0 {
		delete(w.lines.all, w.line)
	}
	w.letGo()
	w.goOn()
}

// pause notes that a pause holds the call.
func (w *waiter) pause() {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	w.due = false
	w.hold()
}

// stand notes that the call has a place, or asks again at that time.
func (w *waiter) stand(place int64) {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	w.place = place
	w.goOn()
}

// isHolding reports whether a pause holds the call.
func (w *waiter) isHolding() bool {
	if w == nil {
		return false
	}
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	return w.holds
}

// isFirst reports whether a pause holds no call before this one.
func (w *waiter) isFirst() bool {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	return w.lines.first(w.line) == w
}

// nap returns a context that also ends when the waiter is woken. Call awake after the sleep: it reports whether the waiter was woken.
func (w *waiter) nap(ctx context.Context) (nap context.Context, awake func() bool) {
	if w == nil {
		return ctx, func() bool { return false }
	}
	nap, cancel := context.WithCancel(ctx)
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	if w.wake = cancel; w.called {
		cancel()
	}
	return nap, func() bool {
		w.lines.mu.Lock()
		defer w.lines.mu.Unlock()
		called := w.called
		w.wake, w.called = nil, false
		cancel()
		return called
	}
}
