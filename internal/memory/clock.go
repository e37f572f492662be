package memory

import (
	"sync/atomic"
	"time"
)

// clock tells the time in microseconds since 1970. Without a function ask it reads the monotonic clock of the system, which takes half the
// time of reading the wall clock. Every second it compares the two, so that it follows when the wall clock is set.
type clock struct {
	ask    func() time.Time
	start  time.Time
	offset atomic.Int64 // microseconds to add to the time since start
	due    atomic.Int64 // when to compare the clocks next, in microseconds after start
}

const compareEvery = int64(time.Second / time.Microsecond)

// newClock returns a clock that calls now, or uses the system's clocks if now is nil.
func newClock(now func() time.Time) *clock {
	start := time.Now()
	start = start.Add(-time.Duration(start.Nanosecond() % 1000)) // so that both clocks reach the next microsecond at the same time
	c := &clock{ask: now, start: start}
	c.offset.Store(c.start.UnixMicro())
	return c
}

func (c *clock) since() int64 { return int64(time.Since(c.start) / time.Microsecond) }

func (c *clock) now() int64 {
	if c.ask != nil {
		return c.ask().UnixMicro()
	}
	since := c.since()
	if due := c.due.Load(); since >= due && c.due.CompareAndSwap(due, since+compareEvery) {
		wall := time.Now().UnixMicro()
		c.compare(since, wall, c.since())
	}
	return c.offset.Load() + since
}

// compare adjusts offset to a reading of the wall clock, made between two readings of the monotonic clock. The thread may have been stopped in
// between, so the exact offset is unknown. compare makes the smallest change that agrees with the three readings. If the present offset agrees
// with them, it changes nothing.
func (c *clock) compare(before, wall, after int64) {
	offset := c.offset.Load()
	c.offset.Store(min(max(offset, wall-after), wall-before))
}
