package engine

import "strings"

// Kind is how a rule counts: an algorithm, or the variant of one that distinct, prepay or warmup makes. The script is told the numbers.
type Kind uint8

const (
	_ Kind = iota
	SlidingWindow
	FixedWindow
	Calendar
	TokenBucket
	LeakyBucket // a TokenBucket of one permit
	SlidingCounter

	// The variants come last.

	Prepaid          // a bucket in which the next call pays
	Warmup           // a prepaid bucket whose rate ramps up after idling
	Distinct         // members of a sliding window
	DistinctCalendar // members of a calendar window
)

// Row is what the table says of a kind: all that other files and packages know of it. CONTRIBUTING.md says how to add one.
type Row struct {
	Name     string // the word of directives; of a variant, a word for those who test it
	Tag      string // in front of the window in keys; "" or a word and a colon
	MaxLimit int64
	Takes    string // the arguments of a rule that go with it, of those that do not go with every algorithm
	IsBucket bool   // it gains permits all the time, and its claims have a Burst
	Lua      string // the Lua file with the same functions
	Commands string // what these run on Redis, besides DEL and TIME, which every rule needs

	state func(r *Rule) State                      // of a subject that was never charged
	terms func(c *Claim, now, until int64) Terms   // what the Lua functions are told
	most  func(c *Claim) (cost int64, what string) // the largest cost that a claim can ever be admitted, and what it is called
}

// The largest limits, in permits.
const (
	MaxLimit       = 1_000_000_000_000_000
	MaxTimes       = 1_000_000 // where the time of each permit is kept
	MaxBucketLimit = 10_000_000
)

var table = [...]Row{
	SlidingWindow: {
		Name: "sliding-window", MaxLimit: MaxTimes, Takes: "wait distinct lease trigger",
		Lua: "sliding_window", state: newSlidingWindow, terms: slidingWindowTerms, most: mostByLimit,
		Commands: "GET LINDEX LLEN LPOP LRANGE LREM LSET PEXPIREAT RPUSH SET",
	},
	FixedWindow: {
		Name: "fixed-window", Tag: "fixed:", MaxLimit: MaxLimit, Takes: "wait lease trigger",
		Lua: "window", state: newWindows, terms: periodTerms, most: mostByLimit,
		Commands: "GET SET SETRANGE",
	},
	Calendar: {
		Name: "calendar", MaxLimit: MaxLimit, Takes: "wait distinct lease trigger",
		Lua: "window", state: newWindows, terms: calendarTerms, most: mostByLimit,
		Commands: "GET SET SETRANGE",
	},
	TokenBucket: {
		Name: "token-bucket", Tag: "bucket:", MaxLimit: MaxBucketLimit, Takes: "wait burst prepay warmup queue lease",
		IsBucket: true, Lua: "bucket", state: newBucket, terms: bucketTerms, most: mostByBurst,
		Commands: "GET SET SETRANGE",
	},
	LeakyBucket: {
		Name: "leaky-bucket", Tag: "leaky:", MaxLimit: MaxBucketLimit, Takes: "wait prepay queue",
		IsBucket: true, Lua: "bucket", state: newBucket, terms: bucketTerms, most: mostByBurst,
		Commands: "GET SET SETRANGE",
	},
	SlidingCounter: {
		Name: "sliding-counter", Tag: "counter:", MaxLimit: MaxLimit, Takes: "slices trigger",
		Lua: "sliding_counter", state: newSlidingCounter, terms: sliceTerms, most: mostByLimit,
		Commands: "GET GETRANGE PEXPIREAT SET SETRANGE",
	},

	Prepaid: {
		Name: "prepaid", Takes: "wait", IsBucket: true, Lua: "bucket", state: newBucket, terms: bucketTerms, most: mostByDebt,
		Commands: "GET SET SETRANGE",
	},
	Warmup: {
		Name: "warmup", Takes: "wait", IsBucket: true, Lua: "warmup", state: newWarmup, terms: warmupTerms, most: mostByDebt,
		Commands: "GET SET",
	},
	Distinct: {
		Name: "distinct", Takes: "trigger", Lua: "distinct", state: newDistinct, terms: distinctTerms, most: mostByLimit,
		Commands: "PEXPIREAT ZADD ZCOUNT ZRANGE ZREM ZREMRANGEBYSCORE ZSCORE",
	},
	DistinctCalendar: {
		Name: "distinct-calendar", Takes: "trigger", Lua: "distinct", state: newDistinct, terms: distinctCalendarTerms, most: mostByLimit,
		Commands: "PEXPIREAT ZADD ZCOUNT ZRANGE ZREM ZREMRANGEBYSCORE ZSCORE",
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

// Algorithms returns the kinds that are no variants.
func Algorithms() []Kind { return Kinds()[:Prepaid-1] }

// Row returns what the table says of the kind.
func (k Kind) Row() *Row { return &table[k] }

// Takes reports whether an argument of a rule goes with the kind.
func (k Kind) Takes(argument string) bool { return strings.Contains(table[k].Takes, argument) }

// String returns the name of the kind.
func (k Kind) String() string { return table[k].Name }

// IsVariant reports whether distinct, prepay or warmup changes how the algorithm counts. A call cannot take up to a number of permits of a
// variant.
func (k Kind) IsVariant() bool { return k >= Prepaid }

// AlgorithmOf returns the algorithm of a window as it stands in keys, and the window without the algorithm's tag.
func AlgorithmOf(window string) (k Kind, rest string) {
	if strings.HasPrefix(window, "cron:") {
		return Calendar, window
	}
	for _, k := range Algorithms() {
		if tag := table[k].Tag; tag != "" && strings.HasPrefix(window, tag) {
			return k, window[len(tag):]
		}
	}
	return SlidingWindow, window
}

// Terms are what the Lua functions of a claim are told besides its cost and limit: see the file of the algorithm.
type Terms struct {
	A, B int64
	Text []byte
}

// Terms returns what the Lua functions are told of a claim that is decided now, and may have to wait until a time.
func (c *Claim) Terms(now, until int64) Terms { return table[c.Rule.Kind].terms(c, now, until) }

// Most returns the largest cost that the claim can ever be admitted, and what it is called. It is 0 for a limit of 0.
func (c *Claim) Most() (cost int64, what string) {
	if c.Limit == 0 {
		return 0, "limit"
	}
	return table[c.Rule.Kind].most(c)
}

func mostByLimit(c *Claim) (int64, string) { return c.Limit, "limit" }
