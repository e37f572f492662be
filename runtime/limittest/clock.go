package limittest

import (
	"context"
	"sync"
	"time"
)

// Clock is a clock that stands still until a test moves it. It is safe for concurrent use.
type Clock struct {
	mu       sync.Mutex
	now      time.Time
	sleepers map[*sleeper]struct{}
	came     *sync.Cond // broadcasts when a sleeper comes
}

type sleeper struct {
	until time.Time
	wake  chan struct{}
}

// NewClock returns a clock that shows noon of 2 March 2026, a Monday, in UTC.
func NewClock() *Clock {
	c := &Clock{now: time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC), sleepers: map[*sleeper]struct{}{}}
	c.came = sync.NewCond(&c.mu)
	return c
}

// Now returns the time on the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d and wakes the calls whose time has come. It panics if d is below 0: time does not go back.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic("limittest.Clock.Advance: found " + d.String() + "; expected 0 or more")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for s := range c.sleepers {
		if !c.now.Before(s.until) {
			delete(c.sleepers, s)
			close(s.wake)
		}
	}
}

// AwaitSleepers returns when at least n calls sleep on the clock. If that never happens, the timeout of go test ends the test.
func (c *Clock) AwaitSleepers(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.sleepers) < n {
		c.came.Wait()
	}
}

// Sleep returns when d has passed on the clock, or when ctx ends.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) {
	if d <= 0 || ctx.Err() != nil {
		return
	}
	s := c.add(d)
	select {
	case <-s.wake:
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.sleepers, s)
	}
}

func (c *Clock) add(d time.Duration) *sleeper {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &sleeper{c.now.Add(d), make(chan struct{})}
	c.sleepers[s] = struct{}{}
	c.came.Broadcast()
	return s
}
