package redisstore

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

// breaker spares calls the wait for a server that cannot be reached: after some failures in a row they fail at once. A reply of
// the server is no failure, whatever it says.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[struct{}]
	last    atomic.Pointer[error]
}

func newBreaker() *breaker {
	return &breaker{circuit: gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      pause,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= maxFailures },
		IsSuccessful: reached,
	})}
}

func reached(err error) bool {
	_, replied := errors.AsType[redis.Error](err)
	return err == nil || replied
}

// try asks the server, unless it could not be reached a moment ago.
func (b *breaker) try(ask func() error) error {
	tried := false
	_, err := b.circuit.Execute(func() (struct{}, error) {
		tried = true
		err := ask()
		if !reached(err) {
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
	return unsent{fmt.Errorf("not tried, since a moment ago: %w", err)}
}
