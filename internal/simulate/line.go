package simulate

import (
	"container/heap"
	"context"
	"iter"
	"math"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// line is a store in virtual time, and the calls that wait in line on it. A call that sleeps is a coroutine: it goes on when virtual
// time has come to where it wakes. Only one of them runs at a time. Under a single rule a call's place is certain when it goes to sleep;
// then it need not sleep.
type line struct {
	ratelimit.Store
	now      time.Time
	parks    bool    // calls have to sleep
	current  *caller // whose call is being decided
	only     caller  // where no call sleeps
	sleepers sleepers
	idle     []*caller // coroutines whose calls are decided
	slept    int       // how many calls have gone to sleep
}

// caller is a call that is being decided, and its coroutine.
type caller struct {
	call   Call
	decide func() error
	err    error

	next  func() (wake time.Time, ok bool) // runs the call until it sleeps; or is decided: then the time is zero
	stop  func()
	sleep func(until time.Time) bool

	wake  time.Time
	order int // of those that wake at one time
}

// longest is a time that comes after all others.
var longest = time.UnixMicro(math.MaxInt64)

func newLine(counts int) *line {
	l := &line{}
	l.Store = memstore.New(memstore.WithClock(l.Time), memstore.WithMaxKeys(counts))
	return l
}

// Time is the store's clock.
func (l *line) Time() time.Time { return l.now }

// Sleep lets other calls run until d has passed.
func (l *line) Sleep(ctx context.Context, d time.Duration) {
	if l.parks && ctx.Err() == nil {
		l.current.sleep(l.now.Add(d))
	}
}

// enter runs decide, which decides a call, until it sleeps or is done.
func (l *line) enter(call Call, decide func() error) error {
	if !l.parks {
		l.current = &l.only
		l.only.call = call
		return decide()
	}
	if len(l.idle) == 0 {
		l.idle = append(l.idle, newCaller())
	}
	c := l.idle[len(l.idle)-1]
	l.idle = l.idle[:len(l.idle)-1]
	c.call, c.decide = call, decide
	return l.resume(c)
}

// newCaller returns a caller that decides one call after the other.
func newCaller() *caller {
	c := new(caller)
	c.next, c.stop = iter.Pull(func(sleep func(time.Time) bool) {
		c.sleep = sleep
		for more := true; more; more = sleep(time.Time{}) {
			c.err = c.decide()
		}
	})
	return c
}

func (l *line) resume(c *caller) error {
	l.current = c
	wake, _ := c.next()
	if wake.IsZero() {
		l.idle = append(l.idle, c)
		return c.err
	}
	l.slept++
	c.wake, c.order = wake, l.slept
	heap.Push(&l.sleepers, c)
	return nil
}

// wakeUntil wakes the calls whose time has come by then, each at its time.
func (l *line) wakeUntil(ctx context.Context, end time.Time) error {
	for len(l.sleepers) > 0 && !l.sleepers[0].wake.After(end) {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := heap.Pop(&l.sleepers).(*caller)
		l.now = c.wake
		if err := l.resume(c); err != nil {
			return err
		}
	}
	if end != longest {
		l.now = end
	}
	return ctx.Err()
}

// leave ends the calls that still sleep. Their context has ended.
func (l *line) leave() {
	for _, c := range append(l.sleepers, l.idle...) {
		l.current = c
		c.stop()
	}
}

// sleepers is a heap of sleeping calls. The first one wakes first.
type sleepers []*caller

func (s sleepers) Len() int      { return len(s) }
func (s sleepers) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s sleepers) Less(i, j int) bool {
	if c := s[i].wake.Compare(s[j].wake); c != 0 {
		return c < 0
	}
	return s[i].order < s[j].order
}
func (s *sleepers) Push(c any) { *s = append(*s, c.(*caller)) }
func (s *sleepers) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
