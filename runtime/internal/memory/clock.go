package memory

import (
	"sync/atomic"
	"time"
)

// clock tells the time in microseconds. Without a function to ask it goes by the system's monotonic clock, which is read in
// half the time of the wall clock, and is set by the wall clock every second, so that it follows when that is put right.
type clock struct {
	ask   func() time.Time
	start time.Time
	set   atomic.Int64 // when, in microseconds after start
	ahead atomic.Int64 // what to add to the time since start
}

const setEvery = int64(time.Second / time.Microsecond)

func (c *clock) now() int64 {
	if c.ask != nil {
		return c.ask().UnixMicro()
	}
	since := int64(time.Since(c.start) / time.Microsecond)
	if since-c.set.Load() >= setEvery || c.ahead.Load() == 0 {
		c.ahead.Store(time.Now().UnixMicro() - since)
		c.set.Store(since)
	}
	return c.ahead.Load() + since
}
