package engine

import (
	"context"
	"errors"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// Store keeps the states of rules and decides calls on them.
type Store interface {
	Decider
	Backend
}

// Backend is what a store offers its limiters besides decisions. A store embeds [Defaults], and has its own method for what it does otherwise.
type Backend interface {
	// Fleet returns what the processes of a prefix know in common. Limiters of one prefix in this process get the same.
	Fleet(prefix string) *fleet.Fleet

	// Local returns an empty store in this process, which has the clock of the store. It shares the bounds of the store, or has bounds of its own
	// of the same size if it is asked when the store may be full. Local returns nil if the store is not in this process.
	Local(whenFull bool) Decider

	// Unsupported says why the store cannot decide a rule that may delay its calls by wait microseconds: an argument of the directive, and
	// what is wrong with it. Both are empty if the store can decide the rule.
	Unsupported(r *Rule, wait int64) (argument, reason string)

	// Charges returns when permits of the count at a key were taken, and for when calls wait, as far as the state says. The count's rule has the
	// given period and burst. now is the store's time. It is for people who look: it asks for one state by one command.
	Charges(ctx context.Context, key string, period time.Duration, burst int64, now time.Time) ([]Charge, error)

	// Ping returns nil if calls under a prefix can be decided. Otherwise the error says in one sentence why not, and what to do. Ping tries
	// what every rule needs, and what the given rules need.
	Ping(ctx context.Context, prefix string, rules []*Rule) error

	// Notify sets the function that the store calls with notices for its operators: what a server lacks, and what the store does instead. Each
	// notice is given once. The first function stays: it is that of the first limiter that uses the store.
	Notify(func(notice string, cause error))

	// Lately notes that something was done, and returns how often that was within the present minute: for all stores of this process on the same
	// servers. A store in this process always returns 0.
	Lately(what string) int

	// Time returns the time on the clock that calls wait by, and Since the time that has passed on it since t. A test may move that clock.
	Time() time.Time
	Since(t time.Time) time.Duration

	// Sleep waits until d has passed on that clock, or until ctx ends. placed says that the call has a place: it is admitted then, whatever
	// other calls do.
	Sleep(ctx context.Context, d time.Duration, placed bool)
}

// Charge is a number of permits that were taken at a time. Calls wait for a time to come.
type Charge struct {
	At      time.Time
	Permits int64
}

// Defaults are the methods of a Backend, without Fleet, for a store that is elsewhere, decides every rule, is always ready, and has no notices.
// Its calls wait by the clock of this machine.
type Defaults struct{}

// Local implements Backend.
func (Defaults) Local(bool) Decider { return nil }

// Unsupported implements Backend.
func (Defaults) Unsupported(*Rule, int64) (argument, reason string) { return "", "" }

// Charges implements Backend.
func (Defaults) Charges(context.Context, string, time.Duration, int64, time.Time) ([]Charge, error) {
	return nil, nil
}

// Ping implements Backend.
func (Defaults) Ping(context.Context, string, []*Rule) error { return nil }

// Notify implements Backend.
func (Defaults) Notify(func(string, error)) {}

// Lately implements Backend.
func (Defaults) Lately(string) int { return 0 }

// Time implements Backend.
func (Defaults) Time() time.Time { return time.Now() }

// Since implements Backend. It reads only the monotonic clock, which takes half the time of Time.
func (Defaults) Since(t time.Time) time.Duration { return time.Since(t) }

// Sleep implements Backend.
func (Defaults) Sleep(ctx context.Context, d time.Duration, _ bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// StateError says why a Store could not read a state: a key holds another type, or the layout of a later version. The store works and still
// has its counts, so the call fails whatever the failure policy is. Nothing was charged.
type StateError struct {
	Found string // what was found, and what to do about it
	Err   error  // the server's error
}

func (e *StateError) Error() string { return e.Found }

// Unwrap returns the server's error.
func (e *StateError) Unwrap() error { return e.Err }

// AwayError is the error of a server that cannot be reached, or does not answer in time. Its text is that of Err.
type AwayError struct{ Err error }

func (e *AwayError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *AwayError) Unwrap() error { return e.Err }

// ErrClosed is the error of a Store whose client was closed.
var ErrClosed = errors.New("the store's client is closed")
