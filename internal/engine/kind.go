package engine

import (
	"strings"
	"time"
)

// Kind is how a rule counts: an algorithm, or a variant of one with amounts, distinct, prepay or warmup. The numbers are also used in the Lua script.
type Kind uint8

const (
	_ Kind = iota
	SlidingWindow
	FixedWindow
	Calendar
	TokenBucket
	LeakyBucket // a TokenBucket of one permit
	SlidingCounter
	Concurrency

	// The variants come last.

	Amounts          // a sliding window with an entry for each call
	Prepaid          // a bucket that calls may leave in debt
	Warmup           // a prepaid bucket whose rate rises after idling
	Distinct         // members of a sliding window
	DistinctCalendar // members of a calendar window
	Anchored         // a calendar window that begins at an anchor
	DistinctAnchored // members of such a window
)

// Row describes a kind. Other files and packages know nothing else about it. CONTRIBUTING.md says how to add one.
type Row struct {
	Name      string // the word in directives; for a variant, a word that only tests use
	Tag       string // what stands in front of the window in keys: "", or a word and a colon
	MaxLimit  int64
	Accepts   string        // the arguments of a rule that this kind accepts and some others do not; also up-to and give, for requests
	IsBucket  bool          // it gains permits all the time, and its claims have a Burst
	OfOneCall bool          // its claims differ from call to call, by a member or an ID, so no refusal is remembered
	OwnText   bool          // its terms differ between the claims of one rule: the script is sent their text apart
	Releases  bool          // a call releases its permits when it ends: its claims have an ID, and nobody knows when permits come back
	Per       time.Duration // of a rule without one
	MinPer    time.Duration
	Lua       string // the Lua file with the same functions

	state func(r *Rule) State                      // makes the state of a subject that was never charged; nil if that is the cell itself
	terms func(c *Claim, now, until int64) Terms   // see Claim.Terms
	most  func(c *Claim) (cost int64, what string) // see Claim.Most
	work  func(c *Claim, n int64) int64            // see Kind.Work; nil means 0
	size  func(c *Claim) int64                     // see Kind.Size; nil means 0
}

// The largest limits, in permits.
const (
	MaxLimit       = 1_000_000_000_000_000
	MaxDeclared    = 10_000    // for the kind that keeps the time of each permit: see Kind.At
	MaxTimes       = 100_000   // for the same kind, after an override has raised the limit
	MaxMembers     = 1_000_000 // for kinds that count members
	MaxAmounts     = 1_000_000_000
	MaxRunning     = 1000 // for the kind that counts calls that run
	MaxBucketLimit = 10_000_000
)

// common are the arguments that nearly all kinds take.
const common = "block refund pause settle give "

var table = [...]Row{
	SlidingWindow: {
		Name: "sliding-window", MaxLimit: MaxTimes, Accepts: common + "up-to wait distinct lease trigger",
		Lua: "sliding_window", state: newSlidingWindow, terms: slidingWindowTerms, most: mostByLimit, work: workOnTimes,
	},
	FixedWindow: {
		Name: "fixed-window", Tag: "fixed:", MaxLimit: MaxLimit, Accepts: common + "up-to wait lease trigger",
		Lua: "window", terms: periodTerms, most: mostByLimit,
	},
	Calendar: {
		Name: "calendar", MaxLimit: MaxLimit, Accepts: "block refund settle give up-to wait distinct lease trigger",
		Lua: "window", terms: calendarTerms, most: mostByLimit,
	},
	TokenBucket: {
		Name: "token-bucket", Tag: "bucket:", MaxLimit: MaxBucketLimit, Accepts: common + "up-to wait burst prepay warmup queue lease",
		IsBucket: true, Lua: "bucket", terms: bucketTerms, most: mostByBurst,
	},
	LeakyBucket: {
		Name: "leaky-bucket", Tag: "leaky:", MaxLimit: MaxBucketLimit, Accepts: common + "up-to wait prepay queue",
		IsBucket: true, Lua: "bucket", terms: bucketTerms, most: mostByBurst,
	},
	SlidingCounter: {
		Name: "sliding-counter", Tag: "counter:", MaxLimit: MaxLimit, Accepts: common + "up-to slices trigger",
		Lua: "sliding_counter", state: newSlidingCounter, terms: sliceTerms, most: mostByLimit, work: workOnSlices,
	},
	Concurrency: {
		Name: "concurrency", Tag: "concurrency:", MaxLimit: MaxRunning, Accepts: "wait hold",
		Releases: true, OfOneCall: true, OwnText: true, Per: time.Minute, MinPer: 3 * time.Second, // permits are renewed once a second
		Lua: "concurrency", state: newConcurrency, terms: concurrencyTerms, most: mostByLimit, size: sizeOfCalls,
	},

	Amounts: {
		Name: "amounts", Tag: "amounts:", MaxLimit: MaxAmounts, Accepts: common + "up-to wait lease trigger",
		Lua: "amounts", state: newAmounts, terms: amountTerms, most: mostByLimit, work: workOnAmounts,
	},
	Prepaid: {
		Name: "prepaid", Accepts: common + "wait", IsBucket: true, Lua: "bucket", terms: bucketTerms, most: mostByDebt,
	},
	Warmup: {
		Name: "warmup", Accepts: common + "wait", IsBucket: true, Lua: "warmup", state: newWarmup, terms: warmupTerms, most: mostByDebt,
	},
	Distinct: {
		Name: "distinct", Accepts: "block refund pause trigger", OfOneCall: true, OwnText: true,
		Lua: "distinct", state: newDistinct, terms: distinctTerms, most: mostByLimit,
	},
	DistinctCalendar: {
		Name: "distinct-calendar", Accepts: "block refund trigger", OfOneCall: true, OwnText: true,
		Lua: "distinct", state: newDistinct, terms: distinctCalendarTerms, most: mostByLimit,
	},
	Anchored: {
		Name: "anchored", MaxLimit: MaxLimit, Accepts: "block refund settle give up-to wait lease trigger", OwnText: true,
		Lua: "window", terms: calendarTerms, most: mostByLimit,
	},
	DistinctAnchored: {
		Name: "distinct-anchored", Accepts: "block refund trigger", OfOneCall: true, OwnText: true,
		Lua: "distinct", state: newDistinct, terms: distinctAnchoredTerms, most: mostByLimit,
	},
}

// Kinds returns all kinds, in the order of their numbers, which begin with 1.
func Kinds() []Kind {
	kinds := make([]Kind, len(table)-1)
	for i := range kinds {
		kinds[i] = Kind(i + 1)
	}
	return kinds
}

// Algorithms returns the kinds that are not variants.
func Algorithms() []Kind { return Kinds()[:Amounts-1] }

// At returns the kind that counts for a limit, as programs declare it or a call brings it: Amounts instead of SlidingWindow if it is above
// MaxDeclared.
func (k Kind) At(limit int64) Kind {
	if k == SlidingWindow && limit > MaxDeclared {
		return Amounts
	}
	return k
}

// Row returns the kind's row of the table.
func (k Kind) Row() *Row { return &table[k] }

// Accepts reports whether the kind accepts an argument of a rule. The argument must be one that only some kinds accept.
func (k Kind) Accepts(argument string) bool { return strings.Contains(table[k].Accepts, argument) }

// String returns the name of the kind.
func (k Kind) String() string { return table[k].Name }

// AlgorithmOf returns the algorithm of a window in the form of keys, and the rest of the window without the algorithm's tag.
func AlgorithmOf(window string) (k Kind, rest string) {
	if strings.HasPrefix(window, "cron:") || strings.HasPrefix(window, "every:") {
		return Calendar, window
	}
	for _, k := range Algorithms() {
		if tag := table[k].Tag; tag != "" && strings.HasPrefix(window, tag) {
			return k, window[len(tag):]
		}
	}
	return SlidingWindow, strings.TrimPrefix(window, table[Amounts].Tag)
}

// Terms are the arguments of the Lua functions for a claim, besides its cost and limit. The file of each algorithm says what they mean.
type Terms struct {
	A, B int64
	Text []byte
}

// Terms returns the terms of a claim that is decided now and may wait until the given time.
func (c *Claim) Terms(now, until int64) Terms { return table[c.Rule.Kind].terms(c, now, until) }

// Most returns the largest cost that the rule can ever admit for the claim, and what that number is called, such as "limit" or "burst". The
// cost is 0 for a limit of 0.
func (c *Claim) Most() (cost int64, what string) {
	if c.Limit == 0 {
		return 0, "limit"
	}
	return table[c.Rule.Kind].most(c)
}

// Work estimates what the script on Redis does for a claim besides what it does for each, in units of about 4 us. n is how many permits the claim
// takes, or, below 0, gives back.
func (k Kind) Work(c *Claim, n int64) int64 {
	if work := table[k].work; work != nil {
		return work(c, n)
	}
	return 0
}

// Size estimates how long the script on Redis takes to read the whole state of a claim, in the same units. It is 0 if the script reads a few
// bytes only.
func (k Kind) Size(c *Claim) int64 {
	if size := table[k].size; size != nil {
		return size(c)
	}
	return 0
}

func mostByLimit(c *Claim) (int64, string) { return c.Limit, "limit" }
