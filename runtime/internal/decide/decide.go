// Package decide holds the algorithms once, as arithmetic on plain integers: when does a rule admit a cost at the
// earliest, what does an admission change, what does giving it back change. It is not a store: it locks nothing, reads no
// clock and does no input or output. The Lua script of package redisstore is the same arithmetic on Redis.
//
// Times and durations are whole microseconds; a time counts from the Unix epoch.
package decide

import (
	"context"
	"hash/maphash"
	"unique"
)

// Kind is how a rule counts. The numbers are those that the Lua script knows.
type Kind uint8

const (
	Log             Kind = 1  // the time of every permit: an exact sliding window
	Fixed           Kind = 2  // a window that opens at the first admission
	Calendar        Kind = 3  // a window between two times of a schedule
	Bucket          Kind = 4  // GCRA
	Prepaid         Kind = 5  // GCRA in which the next call pays
	Warm            Kind = 6  // a bucket whose rate ramps up after idling
	Counter         Kind = 7  // the permits of slices of time: a sliding window of constant size
	Members         Kind = 8  // the members admitted in a sliding window
	CalendarMembers Kind = 9  // the members admitted in a calendar window
	Block           Kind = 10 // until when the claim behind it is refused
)

// Rule is what all claims of one rule have in common. It is not changed once it is in use.
type Rule struct {
	ID       unique.Handle[Identity]
	Hash     uint64 // of ID, in this process
	Kind     Kind
	Per      int64
	Schedule *Schedule // of Calendar and CalendarMembers
	Warmup   int64     // of Warm
	Slices   int64     // of Counter
}

// Slice returns the length of a Counter's slices.
func (r *Rule) Slice() int64 { return (r.Per + r.Slices - 1) / r.Slices }

// Identity tells one rule's states from another's; a prefix and a subject complete it. Limits are not part of it, so that a
// changed limit goes on with the history that there is.
type Identity struct {
	Scope  string // the rule's name
	Window string // Rule.Window of package runtime; behind it the key template of a method's unnamed rule, and :block for a block
}

var seed = maphash.MakeSeed()

// Identify makes scope and window the identity of r.
func (r *Rule) Identify(scope, window string) {
	id := Identity{Scope: scope, Window: window}
	r.ID, r.Hash = unique.Make(id), maphash.Comparable(seed, id)
}

// Mode is what becomes of a rule's refusal.
type Mode uint8

const (
	Enforce Mode = iota
	Shadow       // it is reported, and the call is charged to the other rules only
	Trigger      // there is none: the rule counts on, and reports when its limit is reached
)

// Claim asks one rule for permits, in the name of a subject.
type Claim struct {
	Rule    *Rule
	Subject string
	Member  string // of Members and CalendarMembers, without zero bytes
	Cost    int64  // at least 1
	Limit   int64  // permits per window, at least 1
	Burst   int64  // capacity of a Bucket
	Wait    int64  // how long the rule may delay the call
	Mode    Mode

	// Filled in by a decision.
	Charged  bool  // permits were taken, which Return gives back
	At       int64 // when they were, on the clock that keeps this claim's state
	Extra    int64 // of Warm: how much longer than usual the charge keeps others from passing
	Stored   int64 // of Warm: the stored time that it took
	Earliest int64 // if the rule refuses, also as a shadow: when it would admit the cost; else at most the time of the decision
	Room     int64 // if the rule refuses: the largest cost below Cost that it would admit
	Fired    int64 // if a trigger's limit is reached by this call: the permits used in the window
}

// Needed returns how many permits may be missing from a full bucket for the claim to pass, negated.
func (c *Claim) Needed() int64 {
	if c.Rule.Kind == Prepaid {
		return -c.Burst
	}
	return c.Cost - c.Burst
}

// Refused reports whether the claim's rule refused the decision that was made at now.
func (c *Claim) Refused(now int64) bool { return c.Earliest > now+c.Wait }

// Call is everything that is decided in one step.
type Call struct {
	Prefix unique.Handle[string] // of all keys
	Claims []Claim
	After  int64 // the call is not admitted earlier than this after now
	From   int64 // nor earlier than this time of the store, unless it is 0
	Peek   bool  // charge nothing
	// Refused says that the call is refused elsewhere: nothing is charged, but the refusals of this part begin their blocks.
	Refused bool
	// Undo says of a return that the call was refused elsewhere since: then no window stays open that it opened.
	Undo bool
}

// Verdict is the answer to a call.
type Verdict struct {
	Now      int64 // the store's time
	At       int64 // when the call is admitted; after Now if it has to wait
	Admitted bool
}

// Store keeps the state of rules and decides calls on it. A store is safe for concurrent use.
type Store interface {
	// Decide checks all claims and then commits all of them, or none: when the call is refused, or an error is returned.
	Decide(ctx context.Context, call *Call) (Verdict, error)
	// Return gives back what the claims of an admitted call were charged. Where it fails, those claims stay charged that may
	// be returned again: nothing came of it, and nothing will.
	Return(ctx context.Context, call *Call) error
	// Reset forgets the state of all claims, and returns how many there were.
	Reset(ctx context.Context, call *Call) (int, error)
}

// Settings is a store that also keeps texts by name beside its counts, for all that use it and as lasting as the counts.
type Settings interface {
	// Settings returns all texts under a prefix.
	Settings(ctx context.Context, prefix string) (map[string]string, error)
	// Set sets a text; with onlyNew, only where there is none. It reports whether it did.
	Set(ctx context.Context, prefix, name, text string, onlyNew bool) (bool, error)
	// Unset removes a text.
	Unset(ctx context.Context, prefix, name string) error
}

// Limited is a store that cannot decide every rule.
type Limited interface {
	// Unsupported returns what is in the way of a rule that may delay its calls by wait: the argument of the directive, and
	// the reason; or nothing.
	Unsupported(r *Rule, wait int64) (argument, reason string)
	// Unfit returns what is in the way of claims of one call whose rules are all supported, while rules elsewhere may delay
	// the call by so much; or nothing.
	Unfit(claims []Claim, delay int64) (argument, reason string)
}
