// Package backend is the contract between those who ask for decisions and those who keep counts. It has no logic: package memory and package
// redisstore keep counts.
package backend

import (
	"context"
	"errors"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// Decider decides calls. It is safe for concurrent use. A store is a Decider, and so is what stands between a limiter and its store: each such
// Decider does one thing and passes the rest on to the next.
type Decider interface {
	// Decide checks all claims, and then charges all of them or none. It charges none if the call is refused, or if it returns an error.
	Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error)

	// Adjust changes the charge of each claim of an admitted call by the claim's Delta, once. It leaves in each Delta the part that it did not
	// do and will not do: all of it if Adjust certainly did nothing, or the permits for which the debt would last too long. In a claim that takes
	// permits it sets At to the time for which they were taken, and Dated.
	Adjust(ctx context.Context, call *engine.Call) error

	// Reset deletes the states of all claims, and returns how many there were.
	Reset(ctx context.Context, call *engine.Call) (int, error)
}

// Store keeps the states of rules and decides calls on them. The other methods are what it offers its limiters besides. A store embeds
// [Defaults], and has its own method for what it does otherwise.
type Store interface {
	Decider

	// Fleet returns what the processes of a prefix know in common. Limiters of one prefix in this process get the same.
	Fleet(prefix string) *fleet.Fleet

	// Local returns an empty store in this process, which has the clock of the store. It shares the bounds of the store, or has bounds of its own
	// of the same size if it is asked when the store may be full. Local returns nil if the store is not in this process.
	Local(whenFull bool) Decider

	// Unsupported says why the store cannot decide a rule that may delay its calls by wait microseconds: an argument of the directive, and
	// what is wrong with it. Both are empty if the store can decide the rule.
	Unsupported(r *engine.Rule, wait int64) (argument, reason string)

	// Look returns what people see of the count of a call's only claim. It charges nothing, and begins no block.
	Look(ctx context.Context, call *engine.Call) (engine.Looked, error)

	// Blocks returns keys of a prefix that the block= of rules refuses now: at most the given number, in no order. whole reports whether these are
	// all. The error is a *DeniedError if the user may not search for them.
	Blocks(ctx context.Context, prefix string, most int) (all []Block, whole bool, err error)

	// Servers calls look for the server of the store, for each master of its cluster, or for each shard of its ring; for several perhaps at the same
	// time. The name of a single server is "", of others their address. do sends commands to that server. A store in this process has no server.
	Servers(ctx context.Context, look func(ctx context.Context, name string, do fleet.Do) error) error

	// Ping returns nil if calls under a prefix can be decided. Otherwise the error says in one sentence why not, and what to do. Ping tries
	// what every rule needs, and what the given rules need.
	Ping(ctx context.Context, prefix string, rules []*engine.Rule) error

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

// Block is a key that the block= of a rule refuses.
type Block struct {
	Rule, Tag, Subject string    // as in keys
	Since              time.Time // zero if an older program began the block
	Until              time.Time
}

// Defaults are the methods of a Store, without a Decider, Fleet and Look, for a store that is elsewhere, decides every rule, is always ready, and has no notices.
// Its calls wait by the clock of this machine.
type Defaults struct{}

// Local implements Store.
func (Defaults) Local(bool) Decider { return nil }

// Unsupported implements Store.
func (Defaults) Unsupported(*engine.Rule, int64) (argument, reason string) { return "", "" }

// Blocks implements Store, for a store that knows no blocks.
func (Defaults) Blocks(context.Context, string, int) ([]Block, bool, error) { return nil, true, nil }

// Servers implements Store, for a store in this process.
func (Defaults) Servers(context.Context, func(context.Context, string, fleet.Do) error) error {
	return nil
}

// Ping implements Store.
func (Defaults) Ping(context.Context, string, []*engine.Rule) error { return nil }

// Notify implements Store.
func (Defaults) Notify(func(string, error)) {}

// Lately implements Store.
func (Defaults) Lately(string) int { return 0 }

// Time implements Store.
func (Defaults) Time() time.Time { return time.Now() }

// Since implements Store. It reads only the monotonic clock, which takes half the time of Time.
func (Defaults) Since(t time.Time) time.Duration { return time.Since(t) }

// Sleep implements Store.
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

// DeniedError is the error of a command that the user of the store may not run.
type DeniedError struct {
	Command string // such as "SCAN"
	Err     error  // the server's error
}

func (e *DeniedError) Error() string {
	return "the user may not run " + e.Command + ": " + e.Err.Error()
}

// Unwrap returns the server's error.
func (e *DeniedError) Unwrap() error { return e.Err }

// FullError is the error of a store whose memory is at its bound. Its text is that of Err.
type FullError struct{ Err error }

func (e *FullError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *FullError) Unwrap() error { return e.Err }

// ErrClosed is the error of a Store whose client was closed.
var ErrClosed = errors.New("the store's client is closed")
