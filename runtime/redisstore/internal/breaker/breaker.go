// Package breaker lets calls fail at once if a server cannot be reached, instead of waiting for it. It does not look at replies.
package breaker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

const (
	maxFailures = 3 // failures in a row, after which calls do not try the server

	// Pause is the usual time until one call tries again. It is short because the try only knocks.
	Pause = 20 * time.Millisecond
)

// Breaker makes calls fail at once after several failures in a row. A reply of the server is not a failure, whatever it says.
type Breaker struct {
	circuit *gobreaker.TwoStepCircuitBreaker[struct{}]
	failure atomic.Pointer[error]       // of the last try that failed
	away    atomic.Bool                 // the last try did not reach the server
	knock   func(context.Context) error // or nil
}

// New returns a breaker that lets calls try the server. After a pause it lets one call try a server that fails. knock connects to the server apart
// from the client's pool. It is nil if the client cannot do that.
func New(pause time.Duration, knock func(context.Context) error) *Breaker {
	return &Breaker{knock: knock, circuit: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      pause,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= maxFailures },
		IsSuccessful: Reached,
	})}
}

// Reached reports whether err shows that a server was reached.
func Reached(err error) bool {
	_, replied := errors.AsType[redis.Error](err)
	return err == nil || replied
}

// Begin permits a caller to ask the server. The caller then says by end how that went. If the server could not be reached a moment ago, or
// [Breaker.Knock] does not reach it, the error is an [Unsent].
func (b *Breaker) Begin(ctx context.Context) (end func(error), err error) {
	done, err := b.circuit.Allow()
	if err != nil { // after several failures: the server may have been reached since
		return nil, Unsent{fmt.Errorf("not tried again so soon after: %w", *b.failure.Load())}
	}
	end = func(err error) { b.note(err); done(err) }
	if err = b.Knock(ctx); err != nil {
		end(err)
		return nil, err
	}
	return end, nil
}

// Try calls ask if [Breaker.Begin] permits it.
func (b *Breaker) Try(ctx context.Context, ask func() error) error {
	end, err := b.Begin(ctx)
	if err != nil {
		return err
	}
	return during(end, ask)
}

// Ask calls ask if [Breaker.Knock] permits it. Unlike Try it needs no pause, and does not make calls fail at once. So it is for commands that no
// call waits for, and that may take long.
func (b *Breaker) Ask(ctx context.Context, ask func() error) error {
	if err := b.Knock(ctx); err != nil {
		b.note(err)
		return err
	}
	return during(b.note, ask)
}

// during calls ask, and end with its error. A panic is a failure.
func during(end func(error), ask func() error) error {
	err := ErrPanicked
	defer func() { end(err) }()
	err = ask()
	return err
}

// note notes whether the server was reached. A caller that gave up says nothing about the server.
func (b *Breaker) note(err error) {
	away := !Reached(err)
	if away {
		failure := TimedOut(err) // because others are told of it, whose own contexts go on
		b.failure.Store(&failure)
	}
	if away != b.away.Load() && !errors.Is(err, context.Canceled) {
		b.away.Store(away)
	}
}

// TimedOut returns err without the context.DeadlineExceeded in it, for callers whose own contexts have not ended. The result is an
// os.ErrDeadlineExceeded instead. If a connection was tried, the result still says to which address.
func TimedOut(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		at := *op
		at.Err = os.ErrDeadlineExceeded
		return &at
	}
	return os.ErrDeadlineExceeded
}

// Knock returns an [Unsent] if the last try did not reach the server and it still cannot be reached.
func (b *Breaker) Knock(ctx context.Context) error {
	if b.knock == nil || !b.away.Load() {
		return nil
	}
	if err := b.knock(ctx); !Reached(err) {
		return Unsent{err}
	}
	return nil
}

// ErrPanicked is how asking went if the client panicked.
var ErrPanicked = errors.New("the client panicked")

// Unsent is the error of a command that was not sent.
type Unsent struct{ Err error }

func (e Unsent) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e Unsent) Unwrap() error { return e.Err }
