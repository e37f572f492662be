package simulate

import (
	"cmp"
	"container/heap"
	"context"
	"iter"
	"math"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// line is a store in virtual time, with the calls that wait for it. A sleeping call is a coroutine, which continues when virtual time
// reaches the time at which it wakes. Only one coroutine runs at a time. A call whose place is certain, such as one under a single rule,
// does not sleep. All other calls ask again when they wake.
type line struct {
	ratelimit.Store
	now     time.Time
	keyed   bool    // a rule has a key, so calls of different keys get different answers
	current *caller // the caller whose call is being decided
	queues  queues
	alike   map[alike]*queue
	idle    []*caller // coroutines whose calls are decided
	slept   int       // the number of calls that have slept

	releases bool      // calls release permits when they end
	running  []running // these calls, the one that ends next first: all run equally long
}

// running is a call that holds permits until it ends.
type running struct {
	end   time.Time
	taken *wrap.Taken
}

// alike has the properties that equal calls share.
type alike struct {
	key    int
	cost   int64
	anchor int
}

// queue has equal calls that sleep, in the order of their arrival. All of them would get the same answer as the first. So the others
// sleep until the first is admitted or refused; otherwise each permit would wake all of them.
type queue struct {
	alike
	sleepers []*caller
}

// caller is a call that is being decided, and its coroutine.
type caller struct {
	call   Call
	decide func() error
	err    error

	next  func() (wake time.Time, ok bool) // runs the call until it sleeps or is decided; wake is zero if it is decided
	stop  func()
	sleep func(until time.Time) bool
	wake  time.Time
	order int // the order among calls that wake at the same time
}

// longest is a time after all others.
var longest = time.UnixMicro(math.MaxInt64)

func newLine(counts int) *line {
	l := &line{alike: map[alike]*queue{}}
	l.Store = memstore.New(memstore.WithClock(l.Time), memstore.WithMaxKeys(counts))
	return l
}

// Time implements ratelimit.Store.
func (l *line) Time() time.Time { return l.now }

// Since implements ratelimit.Store.
func (l *line) Since(t time.Time) time.Duration { return l.now.Sub(t) }

// Sleep implements ratelimit.Store. It lets other calls run until d has passed, or until ctx has ended, which it notices every 50 ms.
func (l *line) Sleep(ctx context.Context, d time.Duration, placed bool) {
	if placed {
		return
	}
	c, end, step := l.current, l.now.Add(d), d
	if l.releases {
		step = 50 * time.Millisecond
	}
	for ctx.Err() == nil && l.now.Before(end) {
		if !c.sleep(l.now.Add(min(step, end.Sub(l.now)))) {
			return
		}
	}
}

// enter runs decide, which decides a call, until the call sleeps or is decided.
func (l *line) enter(call Call, decide func() error) error {
	if len(l.idle) == 0 {
		l.idle = append(l.idle, newCaller())
	}
	c := l.idle[len(l.idle)-1]
	l.idle = l.idle[:len(l.idle)-1]
	c.call, c.decide = call, decide
	wake := l.resume(c)
	if wake.IsZero() {
		return c.err
	}
	l.queueUp(c, wake)
	return nil
}

// queueUp adds a sleeping call to the queue of equal calls.
func (l *line) queueUp(c *caller, wake time.Time) {
	l.slept++
	c.order, c.wake = l.slept, wake
	of := alike{cost: c.call.Cost, anchor: c.call.Anchor}
	if l.keyed {
		of.key = c.call.Key
	}
	if q := l.alike[of]; q != nil {
		q.sleepers = append(q.sleepers, c)
		return
	}
	q := &queue{alike: of, sleepers: []*caller{c}}
	l.alike[of] = q
	heap.Push(&l.queues, q)
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

// resume runs a call until it sleeps, and returns the time at which it wakes. If the call is decided, it returns zero.
func (l *line) resume(c *caller) time.Time {
	l.current = c
	wake, _ := c.next()
	if wake.IsZero() {
		l.idle = append(l.idle, c)
	}
	return wake
}

// wakeUntil wakes the calls that wake up to the time end, each at its time.
func (l *line) wakeUntil(ctx context.Context, end time.Time) error {
	for len(l.queues) > 0 && !l.queues[0].sleepers[0].wake.After(end) {
		wake := l.queues[0].sleepers[0].wake
		l.endUntil(wake)
		if err := l.wakeFirst(l.queues[0]); err != nil {
			return err
		}
	}
	if end != longest {
		l.endUntil(end)
		l.now = end
	}
	return ctx.Err()
}

// endUntil ends the calls that run up to a time, each at its time.
func (l *line) endUntil(end time.Time) {
	for len(l.running) > 0 && !l.running[0].end.After(end) {
		l.now = l.running[0].end
		l.running[0].taken.Release(context.Background())
		l.running = l.running[1:]
	}
}

// wakeFirst lets the first call of q ask again. The queue q must be the one that wakes first.
func (l *line) wakeFirst(q *queue) error {
	c := q.sleepers[0]
	l.now = c.wake
	if c.wake = l.resume(c); !c.wake.IsZero() {
		heap.Fix(&l.queues, 0)
		return nil
	}
	if q.sleepers = q.sleepers[1:]; len(q.sleepers) == 0 {
		heap.Pop(&l.queues)
		delete(l.alike, q.alike)
		return c.err
	}
	if next := q.sleepers[0]; next.wake.Before(l.now) {
		next.wake = l.now
	}
	heap.Fix(&l.queues, 0)
	return c.err
}

// starts lets an admitted call run for a time, or a second if that is 0, if calls release permits.
func (l *line) starts(taken *wrap.Taken, runs time.Duration) {
	if l.releases {
		l.running = append(l.running, running{l.now.Add(cmp.Or(runs, time.Second)), taken})
	}
}

// leave ends the coroutines. The context of the calls that still sleep has ended.
func (l *line) leave() {
	left := l.idle
	for _, q := range l.queues {
		left = append(left, q.sleepers...)
	}
	for _, c := range left {
		l.current = c
		c.stop()
	}
}

// queues is a heap of queues, ordered by the times at which their first calls wake.
type queues []*queue

func (q queues) Len() int { return len(q) }

func (q queues) Less(i, j int) bool {
	a, b := q[i].sleepers[0], q[j].sleepers[0]
	return a.wake.Before(b.wake) || a.wake.Equal(b.wake) && a.order < b.order
}
func (q queues) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queues) Push(x any) { *q = append(*q, x.(*queue)) }

func (q *queues) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
