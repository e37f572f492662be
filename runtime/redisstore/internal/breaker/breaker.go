// Package breaker lets calls fail at once if a server cannot be reached, instead of waiting for it. It does not look at replies.
package breaker

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	maxFailures = 3 // failures in a row, after which calls do not try the server

	// Pause is the usual time until one call tries again.
	Pause = 100 * time.Millisecond
)

// Breaker makes calls fail at once after several failures in a row. A reply of the server is not a failure, whatever it says.
type Breaker struct {
	pause time.Duration
	last  atomic.Pointer[error] // of the last try; nil if that reached the server

	mu       sync.Mutex
	failures int       // in a row
	next     time.Time // after several failures, when a call may try again
	trying   bool      // such a call tries now
}

// New returns a breaker that lets calls try the server. After a pause it lets one call try a server that fails.
func New(pause time.Duration) *Breaker { return &Breaker{pause: pause} }

// Reached reports whether err shows that a server was reached.
func Reached(err error) bool {
	_, replied := errors.AsType[redis.Error](err)
	return err == nil || replied
}

// Try calls ask, unless the server could not be reached a moment ago. In that case it returns an [Unsent].
func (b *Breaker) Try(ask func() error) error {
	if last := b.last.Load(); last != nil && !b.mayTry() {
		return Unsent{fmt.Errorf("not tried again so soon after: %w", *last)}
	}
	err := errPanicked
	defer func() { b.note(err) }()
	err = ask()
	return err
}

// mayTry reports whether a call may try a server that fails.
func (b *Breaker) mayTry() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < maxFailures {
		return true
	}
	if b.trying || time.Now().Before(b.next) {
		return false
	}
	b.trying = true
	return true
}

// note notes how a try ended.
func (b *Breaker) note(err error) {
	reached := Reached(err)
	if reached && !b.Fails() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	if reached {
		b.failures = 0
		b.last.Store(nil)
		return
	}
	b.failures++
	b.next = time.Now().Add(b.pause)
	b.last.Store(&err)
}

// Fails reports whether the last try did not reach the server.
func (b *Breaker) Fails() bool { return b.last.Load() != nil }

var errPanicked = errors.New("the client panicked")

// Unsent is the error of a command that was not sent.
type Unsent struct{ Err error }

func (e Unsent) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e Unsent) Unwrap() error { return e.Err }
