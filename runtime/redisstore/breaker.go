package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// pause is how long no call tries a server that could not be reached.
const pause = 100 * time.Millisecond

// breaker spares calls the wait for a server that a moment ago could not be reached: they fail at once. After each pause one
// call tries again. The zero breaker lets all calls try.
type breaker struct {
	off     bool
	failure atomic.Pointer[failure]
}

type failure struct {
	err   error
	until time.Time
}

// check returns an error if the server is taken to be unreachable. It lets one caller through after each pause.
func (b *breaker) check() error {
	f := b.failure.Load()
	if f == nil {
		return nil
	}
	now := time.Now()
	if now.Before(f.until) || !b.failure.CompareAndSwap(f, &failure{f.err, now.Add(pause)}) {
		return fmt.Errorf("not tried, since a moment ago: %w", f.err)
	}
	return nil
}

// note takes in how a command went, and returns its error.
func (b *breaker) note(err error) error {
	switch {
	case b.off || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		// The caller's patience says nothing about the server.
	case unreachable(err):
		b.failure.Store(&failure{err, time.Now().Add(pause)})
	case b.failure.Load() != nil:
		b.failure.Store(nil)
	}
	return err
}

// unreachable is true of failures to connect and of time-outs, but not of connections that broke: the next one may be fine.
func unreachable(err error) bool {
	var netError net.Error
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &netError) && netError.Timeout()
}
