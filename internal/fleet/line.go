package fleet

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Lines are calls of this process that wait, a line for each count. The calls of a line are in the order of their places. Calls that hold have no
// place: they wait for others to end, or for the end of a pause. They come after calls with places, in the order in which they came. Only the first
// call that holds asks the store. A call that gives its place back and holds keeps its position in the line. The zero Lines have no calls.
type Lines struct {
	arrivals atomic.Int64
	mu       sync.Mutex
	all      map[Count][]*Waiter
}

// Arrive returns the number of a call that may wait. A later call has a greater number.
func (l *Lines) Arrive() (number int64) { return l.arrivals.Add(1) }

// Count identifies what one rule counts for one subject.
type Count struct{ Name, Tag, Subject string }

// Waiter is a call in a line.
type Waiter struct {
	lines *Lines
	count Count
	rules []Count // what wakes it
	came  int64   // its number: see Arrive
	at    int64   // its first place
	place int64   // its place now
	holds bool
	due   bool // its place has come, and it waits for calls with earlier places to go

	wake   context.CancelFunc // ends its nap; nil while it is awake
	called bool               // it was woken while it was awake
}

// Holding is the place of a call that holds.
const Holding = math.MaxInt64

// Put puts a call into the line of a count, at a place. w is where the call has been so far, or nil. came is the number with which the call
// arrived. rules are the counts of all its rules.
func (l *Lines) Put(w *Waiter, came int64, count Count, rules []Count, place int64) *Waiter {
	old := w
	l.mu.Lock()
	if w == nil || w.lines != l || w.count != count {
		w = l.add(&Waiter{lines: l, count: count, rules: rules, came: came, at: place})
	}
	if w.place = place; place == Holding {
		w.hold()
	} else {
		w.goOn()
	}
	l.mu.Unlock()
	if w != old {
		old.Leave() // now that it is in the new line, so that the next call of the old one finds it ahead
	}
	return w
}

// add adds a waiter. The caller of this and of the other unexported functions holds the lock.
func (l *Lines) add(w *Waiter) *Waiter {
	if l.all == nil {
		l.all = map[Count][]*Waiter{}
	}
	w.count.Subject = strings.Clone(w.count.Subject) // the line may outlive the call
	line := l.all[w.count]
	i := len(line)
	for i > 0 && cmp.Or(cmp.Compare(line[i-1].at, w.at), cmp.Compare(line[i-1].came, w.came)) > 0 {
		i--
	}
	l.all[w.count] = slices.Insert(line, i, w)
	return w
}

// first returns the first call in a line that holds, or nil.
func (l *Lines) first(count Count) *Waiter {
	line := l.all[count]
	if i := slices.IndexFunc(line, func(w *Waiter) bool { return w.holds }); i >= 0 {
		return line[i]
	}
	return nil
}

// IsFree reports whether a call may ask: no other call holds in the line before it. A call that is not in the line comes after all others.
func (l *Lines) IsFree(count Count, own *Waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.first(count)
	return first == nil || first == own
}

// Wake wakes all calls with a rule that has the count, in whichever lines they are.
func (l *Lines) Wake(count Count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		for _, w := range line {
			if slices.Contains(w.rules, count) {
				w.call()
			}
		}
	}
}

// WakeFirst wakes the first call of a line that holds.
func (l *Lines) WakeFirst(count Count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first(count).call()
}

// call wakes the waiter, or keeps it from falling asleep. The waiter may be nil.
func (w *Waiter) call() {
	if w == nil {
		return
	}
	if w.called = true; w.wake != nil {
		w.wake()
	}
}

// hold notes that the call holds. The first such call wakes the others of the line, so that they give their places back if a pause has begun.
func (w *Waiter) hold() {
	known := w.lines.first(w.count) != nil
	w.holds, w.due = true, false
	w.letGo()
	if known {
		return
	}
	for _, other := range w.lines.all[w.count] {
		if other != w {
			other.call()
		}
	}
}

// letGo wakes the calls whose places have come, so that they see whether this one is still before them.
func (w *Waiter) letGo() {
	for _, other := range w.lines.all[w.count] {
		if other.due {
			other.call()
		}
	}
}

// goOn notes that the call does not hold any more, so the next one can ask.
func (w *Waiter) goOn() {
	wasFirst := w.lines.first(w.count) == w
	if w.holds = false; wasFirst {
		w.lines.first(w.count).call()
	}
}

// IsBehind notes that the place of the call has come. It reports whether calls of the line with earlier places have not gone yet.
func (w *Waiter) IsBehind() bool {
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	w.due = true
	for _, other := range w.lines.all[w.count] {
		if other == w {
			break
		}
		if !other.holds && other.place <= w.place {
			return true
		}
	}
	return false
}

// Holds reports whether the call holds, and whether it is the first that does. The waiter may be nil.
func (w *Waiter) Holds() (holds, first bool) {
	if w == nil {
		return false, false
	}
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	return w.holds, w.lines.first(w.count) == w
}

// Leave removes the call from its line. The waiter may be nil.
func (w *Waiter) Leave() {
	if w == nil {
		return
	}
	w.lines.mu.Lock()
	defer w.lines.mu.Unlock()
	w.goOn()
	line := w.lines.all[w.count]
	line = slices.Delete(line, slices.Index(line, w), slices.Index(line, w)+1)
	if w.lines.all[w.count] = line; len(line) == 0 {
		delete(w.lines.all, w.count)
	}
	w.letGo()
}

// Nap returns a context that also ends when the waiter is woken. Call awake after the sleep: it reports whether the waiter was woken. The waiter may
// be nil.
func (w *Waiter) Nap(ctx context.Context) (nap context.Context, awake func() bool) {
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
