package engine

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
)

// Rule is the part that all claims on one rule have in common. It must not be changed once it is in use.
//
// A prefix, the rule's Name, a subject, and the rule's Tag together identify a state. Limits are not part of that, so a changed limit applies
// to the existing state.
type Rule struct {
	Name     string
	Tag      string // the window, and all else that distinguishes rules of the same name
	Kind     Kind
	Per      int64     // length of the window; 0 for calendars
	Schedule *Schedule // of Calendar and DistinctCalendar
	Every    Every     // of Anchored and DistinctAnchored
	Warmup   int64     // of Warmup: how long the rate takes to rise
	Slices   int64     // of SlidingCounter
	Block    int64     // how long a subject is blocked after a refusal; 0 means no block
	BlockMax int64     // each block within a day of the last one's end is twice as long, up to this; 0 means that all have the same length
	Pausable bool      // its subjects have markers of pauses
	Lease    int64     // how long a process may keep permits that it took ahead; 0 means no lease

	hash uintptr // of Name and Tag; 0 before the first use. An atomic of 64 bits would need an alignment that platforms of 32 bits do not give
}

var seed = maphash.MakeSeed()

// Hash returns a hash of Name and Tag. It is computed once.
func (r *Rule) Hash() uint64 {
	h := atomic.LoadUintptr(&r.hash)
	if h == 0 {
		h = uintptr(3*maphash.String(seed, r.Name) + 5*maphash.String(seed, r.Tag))
		atomic.StoreUintptr(&r.hash, h)
	}
	return uint64(h) * spread
}

// spread is odd, and makes 64 bits of a hash that has 32.
const spread = 0x9e3779b97f4a7c15

// Mode is what happens when a rule refuses a call.
type Mode uint8

const (
	Enforce Mode = iota // the call is refused
	Shadow              // the refusal is reported, and the call is charged to the other rules only
	Trigger             // the rule never refuses: it counts beyond its limit, and reports when the limit is reached
)

// NeverFits is the Wait of a claim on a Shadow that can never admit the call's cost. Such a claim is always refused, and its Cost is 1.
const NeverFits = -1

// Claim asks one rule for permits in the name of a subject, and has the rule's answer.
type Claim struct {
	Ask
	Answer

	Delta int64 // the change for Adjust: below 0, permits to give back; above 0, permits to take, even beyond the limit; or see Pauses
}

// Ask is what a claim asks. Who decides the claim does not change it.
type Ask struct {
	Rule    *Rule
	Subject string // in the form of keys
	Member  string // the member that rules with members count; without zero bytes
	Cost    int64  // permits, at least 1
	Limit   int64  // permits per window, at least 1
	Burst   int64  // capacity of a bucket, in permits
	Wait    int64  // how long this rule may delay the call; 0 for Trigger, 0 or NeverFits for Shadow
	Mode    Mode
	Renewed bool   // permits that are released do not end while the process lives: the store renews them until they are given back
	Anchor  Anchor // of Anchored and DistinctAnchored; without one, the claim knows of no window but the open one
	ID      uint64 // identifies the call to a Concurrency, so that permits are given back even if nobody knows whether the call took them: see [fleet.Fleet.CallID]
}

// Answer is what Decide answers. Every store sets all of it: if two stores decide one call at one time, by one state, their answers are equal.
type Answer struct {
	Charged int64 // permits that were taken; 0 if the rule was not charged
	At      int64 // the time for which they were taken
	Extra   int64 // of Warmup: how much longer than usual the charge lasts
	Stored  int64 // of Warmup: the stored idle time that the charge used up
	Dated   bool  // At is not the time of the call: the permits belong to a lease, or were recorded at the time of later ones

	Refused  bool  // the rule refuses the call, or would refuse it if it were not a Shadow
	Blocked  bool  // an earlier refusal blocks the subject
	Paused   int64 // when the pause of the subject ends; 0 if there is none
	Earliest int64 // when the rule admits the claim, if nothing else is admitted before; 0 if it admits the claim now
	Fired    int64 // permits used in the window, if this call reaches a Trigger's limit; else 0

	// Room, Full and More are set if the call is a Peek or asks for a report, and if Fired is set. If the rule refuses the claim, they are also set for a
	// cost above 1, and for a rule that counts calls that run.

	Room int64 // permits that are left after the decision; below 0 if more are used than the limit, as by a settlement
	Full int64 // when all permits are back; the time of the decision if they are back now
	More int64 // when more than Room is there, or more than none during a block or a pause; the time of the decision if nothing more comes, or nobody knows
}

// Clear takes the answer back.
func (c *Claim) Clear() { c.Answer = Answer{} }

// KeepQuota sets what an earlier answer said of the rule's permits, if it did, at a later time. While not all are back, there is more to come.
func (a *Answer) KeepQuota(earlier *Claim, now int64) {
	if a.Room = earlier.Room; earlier.Full > 0 {
		a.Full = max(earlier.Full, now)
		a.More = max(earlier.More, min(a.Full, now+1))
	}
}

// KeepTexts gives the claim texts of its own. Whoever keeps a claim longer than its call lasts needs that: callers such as servers of fasthttp
// use the memory of their strings again.
func (c *Claim) KeepTexts() { c.Subject, c.Member = strings.Clone(c.Subject), strings.Clone(c.Member) }

// Price returns the Extra and Stored that are given back together with n permits of a Warmup's charge. If n is the whole charge or more, they
// are those of the charge. Otherwise they are 0.
func (c *Claim) Price(n int64) (extra, stored int64) {
	if n < c.Charged {
		return 0, 0
	}
	return c.Extra, c.Stored
}

// Call is everything that is decided in one step.
type Call struct {
	Prefix string // the prefix of all keys
	Claims []Claim

	Peek    bool // charge nothing, and report
	Report  bool // fill in Room, Full and More
	UpTo    bool // take as many permits as every rule admits now, and at most the cost; all claims have the same cost
	Refused bool // another part of the call refused it: nothing is charged, but rules that refuse here begin their blocks
	Grows   bool // it asks for more permits of a call that runs: a refusal begins no block, and only a store answers it

	Reserves bool // the call takes a place now, or none: it does not ask again, so it has to be decided in one step

	// Lease makes the call take permits ahead, for that many microseconds. The call takes at least its cost, and at most Ahead or its cost. All
	// claims must have the same cost, and rules in enforce mode without waits and blocks.
	Lease int64
	Ahead int64
	Back  *Call // an adjustment to make first, which gives back what is left of the previous lease; or nil

	// Rollback tells Adjust that the call was not made: Adjust then closes a window that the call opened.
	Rollback bool

	Change Change // what Adjust does

	// IDs tells Adjust to renew or give back the permits of several calls of a Concurrency, instead of those of the claim's ID. The claim's Delta is
	// the change for each. The call has one claim.
	IDs []uint64
}

// Change is what Adjust does.
type Change uint8

const (
	Charges  Change = iota // it changes the charges of an admitted call
	Gives                  // it gives back the newest permits that are no places, whichever calls took them; or it takes permits
	Pauses                 // it pauses the subjects for Delta microseconds; a pause that ends later stays
	Repauses               // it pauses them in place of any other pause; a Delta below 0 ends the pause
)

// Verdict is the answer to a call. It is small enough for registers.
type Verdict struct {
	Now   int64 // the time of the decision, by the store's clock
	At    int64 // when the call is admitted, or when to ask again; 0 if it is refused; the end of a lease
	Taken int64 // the permits that an UpTo call or a lease took from each rule
	Finding
}

// Finding is the part of a verdict that is no number.
type Finding struct {
	Admitted bool
	Damaged  bool   // the state of a claim is damaged, and was treated as empty
	Source   Source // what decided
}

// Source is what decided a call. The words are those of package ratelimit.
type Source uint8

const (
	SourceStore Source = iota
	SourceMemory
	SourceLease
	SourcePolicy
	SourceBlock
	SourcePause
)

// IsPlain reports whether the answer to a call can serve others: the call asks for permits now, from rules that treat all calls alike.
func (call *Call) IsPlain() bool {
	if call.Peek || call.UpTo || call.Refused || call.Grows {
		return false
	}
	for i := range call.Claims {
		c := &call.Claims[i]
		if c.Wait > 0 || c.Mode != Enforce || c.Rule.Kind.Row().OfOneCall || c.Rule.Pausable {
			return false
		}
	}
	return true
}

// Clone returns a copy of the call, with claims and texts of its own.
func (call *Call) Clone() *Call {
	own := *call
	own.Claims = slices.Clone(call.Claims)
	for i := range own.Claims {
		own.Claims[i].KeepTexts()
	}
	return &own
}

// Undo sets the Deltas so that Adjust gives back all that an admitted call was charged, as if it had not been made.
func (call *Call) Undo() {
	call.Rollback = true
	for i := range call.Claims {
		call.Claims[i].Delta = -call.Claims[i].Charged
	}
}

// ClearDeltas clears the Delta of each claim: nothing of the changes is left to do, or nobody knows whether they were made.
func (call *Call) ClearDeltas() {
	for i := range call.Claims {
		call.Claims[i].Delta = 0
	}
}

// AskAgain reports whether the call should be decided again at v.At: it may wait until then, but no place could be kept for it.
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
