// Package engine holds the algorithms of rate limiting as arithmetic on integers. It answers three questions: when does a rule
// admit a cost, what does an admission change, and what does giving it back change. The Lua files of package redisstore are the
// same arithmetic on Redis: functions that do the same have the same name in a file here and in its twin there.
//
// The package is not a store. It has no locks, reads no clock, and does no input or output.
//
// Times and durations are whole microseconds. A time counts from the Unix epoch, on the clock of the store.
//
// The words:
//
//	rule        one limit: how it counts, over which window
//	permit      one unit of a limit
//	subject     whom a count belongs to: a phone number, a user
//	claim       what one call asks of one rule, for one subject
//	call        the claims that are decided together: all are charged, or none
//	verdict     the answer to a call
//	state       what is remembered of one rule for one subject
//	charge      permits that an admitted call took
//	lease       permits that a process takes ahead and hands out itself
//	place       a time to come for which a waiting call is charged
//	free place  a place that was given up while others were behind it
//	earliest    the first time at which a rule admits a claim
//	room        how many permits a rule would admit now
//	slot        a Redis Cluster's unit of distribution: one key, one slot
//	run         several calls that Redis decides in one script
package engine

import (
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"
)

// Rule is what all claims of one rule have in common. It is not changed once it is in use.
//
// Name and Tag identify the states of the rule, together with a prefix and a subject. Limits are not part of that, so a changed
// limit applies to the history that exists.
type Rule struct {
	Name     string
	Tag      string // the window, and what else tells the states of equal names apart
	Kind     Kind
	Per      int64     // length of the window; 0 for calendars
	Schedule *Schedule // of Calendar and DistinctCalendar
	Warmup   int64     // of Warmup: how long the rate ramps up
	Slices   int64     // of SlidingCounter
	Block    int64     // how long a subject is refused after a refusal; 0 is not at all
	Lease    int64     // for how long a process may take permits ahead; 0 is not at all

	hash uint64 // of Name and Tag, or 0
}

var seed = maphash.MakeSeed()

// Hash returns a hash of what identifies the rule. It is computed once.
func (r *Rule) Hash() uint64 {
	if h := atomic.LoadUint64(&r.hash); h != 0 {
		return h
	}
	h := 3*maphash.String(seed, r.Name) + 5*maphash.String(seed, r.Tag)
	atomic.StoreUint64(&r.hash, h)
	return h
}

// Mode is what becomes of a rule's refusal.
type Mode uint8

const (
	Enforce Mode = iota // the call is refused
	Shadow              // the refusal is reported, and the call is charged to the other rules only
	Trigger             // there is none: the rule counts on and reports when its limit is reached
)

// Never is the Wait of a Shadow that refuses the call whatever there is, since it cannot admit what the call costs. Its Cost is 1.
const Never = -1

// Claim asks one rule for permits in the name of a subject.
type Claim struct {
	Rule    *Rule
	Subject string // as it stands in keys
	Member  string // what Distinct and DistinctCalendar count; without zero bytes
	Cost    int64  // permits, at least 1
	Limit   int64  // permits per window, at least 1
	Burst   int64  // capacity of a bucket, in permits
	Wait    int64  // how long this rule may delay the call; 0 for Trigger, 0 or Never for Shadow
	Mode    Mode

	// A decision fills in the rest, but for Delta.

	Charged int64 // permits that were taken; 0 if the rule was not charged
	At      int64 // the time they were taken for
	Extra   int64 // of Warmup: how much longer than usual the charge lasts
	Stored  int64 // of Warmup: the stored idle time it used up
	Dated   bool  // At is not the time of the call, since the permits are of a lease, or were recorded behind later ones

	Refused  bool  // the rule refuses the call, or would if it were not a Shadow
	Earliest int64 // when the rule admits the claim, if nothing else is admitted before. Set if it does not admit it now.
	Fired    int64 // permits used in the window, if a Trigger's limit is reached by this call; else 0

	// Set if the call asks for a report, or is a Peek. They are also set if the claim refuses a cost above 1, or
	// fires.

	Room int64 // permits that are left after the decision
	Full int64 // when all permits are there again; the time of the decision if they are there now

	Delta int64 // what Adjust is to do: permits to give back, negated, or to take beyond the limit
}

// Clear empties the fields that a decision fills in, for the next decision.
func (c *Claim) Clear() {
	c.Charged, c.At, c.Extra, c.Stored, c.Refused, c.Earliest, c.Fired, c.Room, c.Full = 0, 0, 0, 0, false, 0, 0, 0, 0
	c.Dated = false
}

// Price returns the Extra and Stored that go back with n permits of a Warmup's charge: with all of them or more, those of the charge; with
// fewer, none.
func (c *Claim) Price(n int64) (extra, stored int64) {
	if n < c.Charged {
		return 0, 0
	}
	return c.Extra, c.Stored
}

// Call is everything that is decided in one step.
type Call struct {
	Prefix string // of all keys
	Claims []Claim

	Peek    bool // charge nothing, and report
	Report  bool // fill in Room and Full
	UpTo    bool // take as many permits as every rule admits now, at most the cost, which is the same in all claims
	Refused bool // another part of the call refuses it: nothing is charged, but refusals here begin their blocks

	// Lease makes the call take permits ahead: its cost, which is the same in all claims, or more, up to Ahead. The permits are for
	// so long, in microseconds. Only rules that enforce their limits without waits and blocks go with it.
	Lease int64
	Ahead int64

	// Rollback says of an Adjust that the call was not made: a window that the call opened is closed.
	Rollback bool
}

// Verdict is the answer to a call.
type Verdict struct {
	Now      int64 // the store's time of the decision
	At       int64 // when the call is admitted, or when to ask again; after Now if it has to wait. 0 if it is refused. The end of a lease.
	Admitted bool
	Taken    int64 // of an UpTo call or a lease: the permits taken from each rule

	Damaged    bool // the state of a claim is damaged, and counted as none
	Remembered bool // the store was not asked, since it is known to refuse the call still
	Leased     bool // the store was not asked, since the permits were taken ahead
}

// AskAgain reports whether the call is to be decided once more, at v.At: it has time until then, but no place could be kept for it.
func (call *Call) AskAgain(v Verdict) bool {
	if v.Admitted || call.Refused {
		return false
	}
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Refused && c.Mode == Enforce {
			return false
		}
	}
	return true
}

// Store keeps the states of rules and decides calls on them. It is safe for concurrent use.
type Store interface {
	// Decide checks all claims, and then charges all of them or none: none if the call is refused or an error is returned.
	Decide(ctx context.Context, call *Call) (Verdict, error)

	// Adjust changes what the claims of an admitted call were charged by their Deltas, once. Afterwards a Delta is what was not done, and
	// will not be: all of it where Adjust fails, or the permits that a debt has no room for.
	Adjust(ctx context.Context, call *Call) error

	// Reset forgets the states of all claims, and returns how many there were.
	Reset(ctx context.Context, call *Call) (int, error)

	Settings
}

// StateError says why a Store could not read a state: a key holds another type, or a layout of a later program. The store works, and its
// counts are there, so the call fails whatever the failure policy is. Nothing was charged.
type StateError struct {
	Found string // and what to do about it
	Err   error  // as the server says it
}

func (e *StateError) Error() string { return e.Found }

// Unwrap returns what the server says.
func (e *StateError) Unwrap() error { return e.Err }

// ErrClosed is why a Store cannot be asked any more: its client was closed.
var ErrClosed = errors.New("the store's client is closed")

// MaxSettings is how many texts of a list are followed.
const MaxSettings = 1000

// Settings are lists of texts by name, for all processes that use a store. They last as long as its counts. The name of a list is a
// prefix, a colon and a word.
type Settings interface {
	// Settings returns the texts of a list. Of a list of more than MaxSettings it may leave some out, but returns more than so many.
	Settings(ctx context.Context, list string) (map[string]string, error)
	// Set sets a text. Where one is set already, a replaces that is not nil says whether that one may go. It reports whether it did.
	Set(ctx context.Context, list, name, text string, replaces func(old string) bool) (bool, error)
	// Unset removes texts.
	Unset(ctx context.Context, list string, names ...string) error
	// Register sets texts of a list that expires after life, unless more are set before.
	Register(ctx context.Context, list string, texts map[string]string, life time.Duration) error
}

// Witness is a store that may publish what becomes of calls.
type Witness interface {
	// Watches reports whether it does.
	Watches() bool
	// Witness is told of a call that was refused without the store, by a block or a limit of 0. Its claims say which rules refused it.
	Witness(call *Call)
}

// Pinger is a store that can say whether it is ready to decide.
type Pinger interface {
	// Ping returns why calls under a prefix cannot be decided, in one sentence that says what to do, or nil. It tries what the rules
	// need, and what every rule needs.
	Ping(ctx context.Context, prefix string, rules []*Rule) error
}

// Limited is a store that cannot decide every rule.
type Limited interface {
	// Unsupported says why the store cannot decide a rule that may delay its calls by wait: an argument of the directive, and what is
	// wrong with it. Both are empty if it can.
	Unsupported(r *Rule, wait int64) (argument, reason string)
}

// Sleeper is a store on a clock that a test moves. Calls wait by that clock.
type Sleeper interface {
	// Time returns the time on the clock.
	Time() time.Time
	// Sleep waits until so much time has passed on the clock, or ctx ends. A call that is placed is admitted then, whatever other
	// calls do.
	Sleep(ctx context.Context, d time.Duration, placed bool)
}

// Notifier is a store that has notices for those who run it: what a server lacks, and how the store does without.
type Notifier interface {
	// Notify makes the store tell its notices from now on. Each is told once.
	Notify(func(notice string, cause error))
}
