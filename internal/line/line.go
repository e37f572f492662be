// Package line knows which calls wait in this process, in which order, and for what. It asks no store, and has no clock.
package line

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// State is what a waiting call does. Of the calls of one line that are held, only the first asks. Other calls go by their own times.
type State uint8

// The states of a waiting call.
const (
	Asks          State = iota // it asks, or sleeps until it asks again, because no place could be kept for it
	Placed                     // it has a place, and sleeps until then
	HeldByPause                // a pause holds it
	HeldByRunning              // running calls hold it, because they have the permits that it needs
)

func (s State) isHeld() bool { return s >= HeldByPause }

// Count identifies what a rule counts for a subject. Each Count has a line.
type Count struct {
	Owner              any // who has the count: one limiter, or those of a prefix
	Name, Tag, Subject string
	Releases           bool // its permits are released when calls end; the calls that wait for that have a line of their own
}

// Waiter is a call that may wait. Only functions of Lines change it.
type Waiter struct {
	State State
	Count Count   // in whose line it is
	Rules []Count // what its rules count. The call sets them before it enters a line: see Wake

	// Calls stand in a line by first, then by came.
	first int64 // the time of the call when it entered the line
	came  int64 // its number: a later call has a greater one
	time  int64 // of its place, or at which it asks; a call that is held has none, so it is the greatest
	due   bool  // the time has come, and the call waits for those with earlier times to go

	wake  context.CancelFunc // ends its sleep; nil while it is awake
	woken bool               // something has happened since its last sleep, so it does not fall asleep
}

// order compares the positions of two calls in a line.
func order(a, b *Waiter) int {
	return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.came, b.came))
}

// Lines are the calls that wait.
type Lines struct {
	arrivals atomic.Int64
	mu       sync.Mutex // of what follows, and of the calls; functions that are not exported need it
	lines    map[Count][]*Waiter
}

// New returns lines without calls.
func New() *Lines { return &Lines{lines: map[Count][]*Waiter{}} }

// Arrive makes w a call that has come now, and may wait.
func (l *Lines) Arrive(w *Waiter) { *w = Waiter{came: l.arrivals.Add(1)} }

// Put gives a call a state and a time, which held calls do not need. The call leaves its line and enters that of the count. If that is the same
// line, it keeps its position.
func (l *Lines) Put(w *Waiter, state State, count Count, time int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if state.isHeld() {
		time = math.MaxInt64
	}
	if w.Count != count {
		l.leave(w)
		count.Subject = strings.Clone(count.Subject) // the line may outlive the call
		w.State, w.Count, w.first = Asks, count, time
		i, _ := slices.BinarySearchFunc(l.lines[count], w, order)
		l.lines[count] = slices.Insert(l.lines[count], i, w)
	}
	before := l.firstHeld(w.Count)
	w.State, w.time, w.due = state, time, false
	l.tell(w.Count, w, before)
}

// Leave removes a call from its line, if it is in one.
func (l *Lines) Leave(w *Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(w)
}

func (l *Lines) leave(w *Waiter) {
	count := w.Count
	i := slices.Index(l.lines[count], w)
	if i < 0 {
		return
	}
	before := l.firstHeld(count)
	w.Count = Count{}
	if l.lines[count] = slices.Delete(l.lines[count], i, i+1); len(l.lines[count]) == 0 {
		delete(l.lines, count)
	}
	l.tell(count, w, before)
}

// tell wakes the calls of a line that have to look again, because a call has changed. before was the first that is held. The next one may ask now.
// If none was held, and one is, a pause may have begun, so the others may have to give their places back.
func (l *Lines) tell(count Count, changed, before *Waiter) {
	first := l.firstHeld(count)
	for _, w := range l.lines[count] {
		if w != changed && (w.due || first != before && (w == first || before == nil)) {
			w.call()
		}
	}
}

func (w *Waiter) call() {
	if w.woken = true; w.wake != nil {
		w.wake()
	}
}

// FirstHeld returns the first call in the line of a count that is held, or nil.
func (l *Lines) FirstHeld(count Count) *Waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.firstHeld(count)
}

func (l *Lines) firstHeld(count Count) *Waiter {
	line := l.lines[count]
	if i := slices.IndexFunc(line, func(w *Waiter) bool { return w.State.isHeld() }); i >= 0 {
		return line[i]
	}
	return nil
}

// IsBehind notes that the time of a call has come. It reports whether a call with an earlier time is still before it.
func (l *Lines) IsBehind(w *Waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.due = true
	line := l.lines[w.Count]
	return slices.ContainsFunc(line[:slices.Index(line, w)], func(o *Waiter) bool { return !o.State.isHeld() && o.time <= w.time })
}

// Wake wakes all calls with a rule that has the count, in whichever lines they are.
func (l *Lines) Wake(count Count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		for _, w := range line {
			if slices.Contains(w.Rules, count) {
				w.call()
			}
		}
	}
}

// WakeFirst wakes the first call in the line of a count that is held.
func (l *Lines) WakeFirst(count Count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.firstHeld(count); w != nil {
		w.call()
	}
}

// Sleep calls sleep with a context that ends when the call is woken, too. woken says that it was, since it last slept.
func (l *Lines) Sleep(ctx context.Context, w *Waiter, sleep func(context.Context)) (woken bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	if w.wake = cancel; w.woken {
		cancel()
	}
	l.mu.Unlock()
	sleep(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	woken, w.wake, w.woken = w.woken, nil, false
	return woken
}
