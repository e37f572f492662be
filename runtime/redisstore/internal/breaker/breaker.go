// Package breaker spares calls the wait for a server that cannot be reached. What a server replies is not its concern.
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
	maxFailures = 3                      // in a row; then no call tries the server
	pause       = 100 * time.Millisecond // until one call tries again
)

// Breaker makes calls fail at once after some failures in a row. A reply of the server is not a failure, whatever it says.
type Breaker struct {
	circuit *gobreaker.CircuitBreaker[struct{}]
	last    atomic.Pointer[error]
}

// New returns a breaker that lets calls try.
func New() *Breaker {
	return &Breaker{circuit: gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      pause,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= maxFailures },
		IsSuccessful: Reached,
	})}
}

// Reached reports whether err leaves no doubt that a server was reached.
func Reached(err error) bool {
	_, replied := errors.AsType[redis.Error](err)
	return err == nil || replied
}

// Try asks the server. If it could not be reached a moment ago, Try does not ask, and returns an [Unsent].
func (b *Breaker) Try(ask func() error) error {
	tried := false
	_, err := b.circuit.Execute(func() (struct{}, error) {
		tried = true
		err := ask()
		if !Reached(err) {
			b.last.Store(&err)
		}
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

// Unsent is the error of a command that was not sent.
type Unsent struct{ Err error }

func (e Unsent) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e Unsent) Unwrap() error { return e.Err }
