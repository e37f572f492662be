package engine

// Kind is how a rule counts. The script knows the kinds by their numbers: common.lua names those that it tells apart.
type Kind uint8

const (
	SlidingWindow    Kind = 1
	FixedWindow      Kind = 2
	Calendar         Kind = 3
	Bucket           Kind = 4 // token-bucket, and leaky-bucket with a burst of 1
	Prepaid          Kind = 5 // a bucket in which the next call pays
	Warmup           Kind = 6 // a prepaid bucket whose rate ramps up after idling
	SlidingCounter   Kind = 7
	Distinct         Kind = 8 // members of a sliding window
	DistinctCalendar Kind = 9 // members of a calendar window
)

// algorithm is a row of the table below.
//
// To add an algorithm:
//
//   - write its State in a Go file here, and functions of the same names in a Lua file of package lua;
//   - give it a Kind and a row in the table here;
//   - give it an Algorithm and a row in package ratelimit's algorithm.go;
//   - give it a word in annotations/spec.go, and run make generate for the documentation.
//
// The script, the differential test and the tests of the store in memory take in a new row by themselves. What a Rule of the new kind
// needs besides Per, they must draw.
type algorithm struct {
	lua   string                                   // the Lua file with the same functions
	state func(r *Rule) State                      // of a subject that was never charged
	terms func(c *Claim, now, until int64) Terms   // what the Lua functions are told
	most  func(c *Claim) (cost int64, what string) // the largest cost that a claim can ever be admitted, and what it is called
	joins bool                                     // equal calls may be decided as one
}

// algorithms has a row for each kind.
var algorithms = [...]algorithm{
	SlidingWindow:    {"sliding_window", newSlidingWindow, slidingWindowTerms, mostByLimit, true},
	FixedWindow:      {"window", newWindows, periodTerms, mostByLimit, true},
	Calendar:         {"window", newWindows, calendarTerms, mostByLimit, true},
	Bucket:           {"bucket", newBucket, bucketTerms, mostByBurst, true},
	Prepaid:          {"bucket", newBucket, bucketTerms, mostByDebt, false},
	Warmup:           {"warmup", newWarmup, warmupTerms, mostByDebt, false},
	SlidingCounter:   {"sliding_counter", newSlidingCounter, sliceTerms, mostByLimit, true},
	Distinct:         {"distinct", newDistinct, distinctTerms, mostByLimit, false},
	DistinctCalendar: {"distinct", newDistinct, distinctCalendarTerms, mostByLimit, false},
}

// Kinds returns all kinds, in the order of their numbers, which begin with 1.
func Kinds() []Kind {
	kinds := make([]Kind, len(algorithms)-1)
	for i := range kinds {
		kinds[i] = Kind(i + 1)
	}
	return kinds
}

// LuaFile returns the name of the Lua file that has the same functions, without its extension.
func (k Kind) LuaFile() string { return algorithms[k].lua }

// Terms are what the Lua functions of a claim are told besides its cost and limit: see the file of the algorithm.
type Terms struct {
	A, B int64
	Text []byte
}

// Terms returns what the Lua functions are told of a claim that is decided now, and may have to wait until a time.
func (c *Claim) Terms(now, until int64) Terms { return algorithms[c.Rule.Kind].terms(c, now, until) }

// Joins reports whether equal calls under the rule may be decided as one call that takes up to a number of permits.
func (r *Rule) Joins() bool { return algorithms[r.Kind].joins }

// Most returns the largest cost that the claim can ever be admitted, and what it is called. It is 0 for a limit of 0.
func (c *Claim) Most() (cost int64, what string) {
	if c.Limit == 0 {
		return 0, "limit"
	}
	return algorithms[c.Rule.Kind].most(c)
}

func mostByLimit(c *Claim) (int64, string) { return c.Limit, "limit" }

// State is what is remembered of one rule for one subject. Each algorithm has one in a file of its own.
type State interface {
	// Earliest returns the first time, from a time on, at which the claim fits if nothing else is admitted before.
	Earliest(c *Claim, now, from int64) int64

	// Room returns how many permits fit now.
	Room(c *Claim, now int64) int64

	// Full returns when all permits are there again: now if they are there.
	Full(c *Claim, now int64) int64

	// Reserves reports whether the state can keep a place for the claim at a time to come.
	Reserves(c *Claim, now, at int64) bool

	// Commit charges n permits for a time at which they fit, and says in the claim if they are recorded at another one. It reports
	// whether it charged anything: a member that is known costs nothing.
	Commit(c *Claim, n, now, at int64) bool

	// Charge takes n permits now, beyond the limit where need be. It leaves in the claim's Delta what a debt has no room for.
	Charge(c *Claim, n, now int64)

	// Last reports whether nobody has a later place than n permits of c at a time to come.
	Last(c *Claim, n, now, at int64) bool

	// GiveBack takes back n permits that c was charged at c.At, as far as they still count. A rollback also closes a window
	// that the charge opened.
	GiveBack(c *Claim, n, now int64, rollback bool)

	// Expiry returns the time from which the state says no more than a new one.
	Expiry(r *Rule) int64

	// Size returns about how many bytes of memory the state takes.
	Size() int64

	// Grows returns about how many bytes more it takes after the claim's cost is charged, at most.
	Grows(c *Claim, now int64) int64
}

// longAgo is before any time, with room to subtract.
const longAgo = -1 << 60

// newState returns the state of a subject that was never charged.
func newState(r *Rule) State { return algorithms[r.Kind].state(r) }

// Cell is all that a store keeps for one rule and subject.
type Cell struct {
	State State
	Free  places // given up, and free for others
	Until int64  // the subject is blocked until then
}

// NewCell returns the cell of a subject that was never charged.
func NewCell(r *Rule) Cell { return Cell{State: newState(r), Until: longAgo} }

// Expiry returns the time from which the cell says no more than a new one.
func (cell *Cell) Expiry(r *Rule) int64 {
	return max(cell.State.Expiry(r), cell.Free.last(), cell.Until)
}
