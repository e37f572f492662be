package redisstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
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

// notTried is the error of a command that was not sent.
type notTried struct{ cause error }

func (e notTried) Error() string { return "not tried, since a moment ago: " + e.cause.Error() }
func (e notTried) Unwrap() error { return e.cause }

// check returns an error if the server is taken to be unreachable. It lets one caller through after each pause.
func (b *breaker) check() error {
	f := b.failure.Load()
	if f == nil {
		return nil
	}
	now := time.Now()
	if now.Before(f.until) || !b.failure.CompareAndSwap(f, &failure{f.err, now.Add(pause)}) {
		return notTried{f.err}
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

// untaken reports whether a command failed that no server has run: it was not sent, or a server would not begin with it. What
// breaks off in the middle of a script is called ERR or WRONGTYPE.
func untaken(err error) bool {
	if _, ok := errors.AsType[notTried](err); ok || errors.Is(err, redis.ErrPoolTimeout) {
		return true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op == "dial"
	}
	reply, ok := errors.AsType[redis.Error](err)
	return ok && !strings.HasPrefix(reply.Error(), "ERR ") && !strings.HasPrefix(reply.Error(), "WRONGTYPE ")
}
