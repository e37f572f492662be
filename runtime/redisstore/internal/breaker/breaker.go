// Package breaker lets calls fail at once if a server cannot be reached, instead of waiting for it. It does not look at replies.
package breaker

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

const (
	maxFailures = 3 // failures in a row, after which calls do not try the server

	// Pause is the usual time until one call tries again.
	Pause = 100 * time.Millisecond
)

// Breaker makes calls fail at once after several failures in a row. A reply of the server is not a failure, whatever it says.
type Breaker struct {
	circuit *gobreaker.CircuitBreaker[struct{}]
	last    atomic.Pointer[error] // of the last try; nil if that reached the server
}

// New returns a breaker that lets calls try the server. After a pause it lets one call try a server that fails.
func New(pause time.Duration) *Breaker {
	return &Breaker{circuit: gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
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

// Try calls ask, unless the server could not be reached a moment ago. In that case it returns an [Unsent].
func (b *Breaker) Try(ask func() error) error {
	tried := false
	_, err := b.circuit.Execute(func() (struct{}, error) {
		tried = true
		err := errPanicked
		defer func() {
			if !Reached(err) {
				b.last.Store(&err)
			} else if b.last.Load() != nil {
				b.last.Store(nil)
			}
		}()
		err = ask()
		return struct{}{}, err
	})
	if tried {
		return err
	}
	if last := b.last.Load(); last != nil {
		err = *last
	}
	return Unsent{fmt.Errorf("not tried again so soon after: %w", err)}
}

// Fails reports whether the last try did not reach the server.
func (b *Breaker) Fails() bool { return b.last.Load() != nil }

var errPanicked = errors.New("the client panicked")

// Unsent is the error of a command that was not sent.
type Unsent struct{ Err error }

func (e Unsent) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e Unsent) Unwrap() error { return e.Err }
