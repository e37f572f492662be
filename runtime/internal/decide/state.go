package decide

import (
	"math"
	"sort"
)

// State is the state of one rule for one subject.
type State interface {
	// Earliest returns the first time, from now on, at which the claim fits if nothing else is admitted before.
	Earliest(c *Claim, now int64) int64
	// Commit charges the claim, now, for a time that is not before Earliest, and returns what is used in the window then.
	Commit(c *Claim, now, at int64) (used int64)
	// Return gives back what the claim was charged at c.At, as far as it still counts.
	Return(c *Claim, now int64)
	// Expiry returns the time from which the state says no more than a new one.
	Expiry(r *Rule) int64
}

// longAgo is before any time, with room to subtract.
const longAgo = math.MinInt64 / 4

// idle is the arrival of a bucket that was never charged.
var idle = arrival{whole: longAgo}

// NewState returns the state of who has not been admitted yet.
func NewState(r *Rule) State {
	switch r.Kind {
	case Log:
		return new(log)
	case Fixed, Calendar:
		return &windows{window: window{stop: longAgo}}
	case Bucket, Prepaid:
		return &bucket{arrival: idle}
	case Warm:
		return &warm{bucket: bucket{arrival: idle}, stored: r.Warmup}
	case Counter:
		return new(counter)
	case Members, CalendarMembers:
		return &members{known: make(map[string]int64)}
	default:
		return &block{until: longAgo}
	}
}

// Room returns the largest cost below c's that is admitted now.
func Room(s State, c *Claim, now int64) int64 {
	less := *c
	return int64(sort.Search(int(c.Cost-1), func(i int) bool {
		less.Cost = int64(i) + 1
		return s.Earliest(&less, now) > now
	}))
}
