// Package decide holds the algorithms once, as arithmetic on plain integers: when does a rule admit a cost at the
// earliest, what does an admission change, what does giving it back change. It is not a store: it locks nothing, reads no
// clock and does no input or output. The Lua script of package redisstore is the same arithmetic on Redis.
//
// Times and durations are whole microseconds; a time counts from the Unix epoch.
package decide

import (
	"context"
	"hash/maphash"
	"sort"
	"unique"
)

// Kind is how a rule counts. The numbers are those that the Lua script knows.
type Kind uint8

const (
	Log      Kind = 1 // the time of every permit: an exact sliding window
	Fixed    Kind = 2 // a window that opens at the first admission
	Calendar Kind = 3 // a window between two times of a schedule
	Bucket   Kind = 4 // GCRA
)

// Rule is what all claims of one rule have in common. It is not changed once it is in use.
type Rule struct {
	ID       unique.Handle[Identity]
	Hash     uint64 // of ID, in this process
	Kind     Kind
	Per      int64     // 0 for Calendar
	Schedule *Schedule // nil but for Calendar
}

// Identity tells one rule's states from another's; a prefix and a subject complete it. Limits are not part of it, so that a
// changed limit goes on with the history that there is.
type Identity struct {
	Scope  string // the rule's name
	Window string // what Rule.Window in package runtime returns
}

// Claim asks one rule for permits, in the name of a subject.
type Claim struct {
	Rule    *Rule
	Subject string
	Cost    int64 // at least 1
	Limit   int64 // permits per window; at least Cost, but for a Bucket
	Burst   int64 // capacity of a Bucket; at least Cost

	At int64 // filled in by an admission: when; on the clock that keeps this claim's state

	// Filled in by a refusal.
	Earliest int64 // when the rule would admit the cost; at most Verdict.Now where it would do so now
	Room     int64 // the largest cost below Cost that the rule would admit now
}

// Call is everything that is decided in one step.
type Call struct {
	Prefix unique.Handle[string] // of all keys
	Claims []Claim
	Wait   int64 // how long the call would wait
	Peek   bool  // charge nothing
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
	// Return gives back what an admitted call was charged.
	Return(ctx context.Context, call *Call) error
	// Reset forgets the state of all claims.
	Reset(ctx context.Context, call *Call) error
}

// State is the state of one rule for one subject. The zero State has admitted nothing.
type State struct {
	// Fixed and Calendar: start and stop of the open window, and the permits used in it.
	// Bucket: x + y/z is GCRA's theoretical arrival time: when the bucket is full again; z is the limit at the last charge.
	x, y, z int64
	log     ring // Log: the times of the permits
}

// Earliest returns the first time, from now on, at which c fits if nothing else is admitted before.
func (s *State) Earliest(c *Claim, now int64) int64 {
	switch c.Rule.Kind {
	case Log:
		if i := s.log.len() - int(c.Limit-c.Cost) - 1; i >= 0 {
			return max(now, s.log.at(i)+c.Rule.Per)
		}
	case Fixed, Calendar:
		if now < s.y && s.z+c.Cost > c.Limit {
			return s.y
		}
	case Bucket:
		x, y := s.arrival(c.Limit)
		if x >= now {
			x, y = gain(x, y, c.Cost-c.Burst, c.Limit, c.Rule.Per)
			return max(now, x+min(y, 1))
		}
	}
	return now
}

// Room returns the largest cost below c's that is admitted now.
func (s *State) Room(c *Claim, now int64) int64 {
	less := *c
	return int64(sort.Search(int(c.Cost-1), func(i int) bool {
		less.Cost = int64(i) + 1
		return s.Earliest(&less, now) > now
	}))
}

// Commit charges c at the given time, which is not before Earliest.
func (s *State) Commit(c *Claim, at int64) {
	c.At = at
	switch c.Rule.Kind {
	case Log:
		s.log.push(at, int(c.Cost))
		s.log.drop(s.log.len() - int(c.Limit))
	case Fixed, Calendar:
		if at >= s.y {
			s.x, s.y, s.z = at, at+c.Rule.Per, 0
			if c.Rule.Kind == Calendar {
				s.x, s.y = c.Rule.Schedule.Window(at)
			}
		}
		s.z += c.Cost
	case Bucket:
		x, y := s.arrival(c.Limit)
		if x < at {
			x, y = at, 0
		}
		s.x, s.y = gain(x, y, c.Cost, c.Limit, c.Rule.Per)
		s.z = c.Limit
	}
}

// Return gives back what c was charged at c.At. What has left its window since stays gone.
func (s *State) Return(c *Claim, now int64) {
	switch c.Rule.Kind {
	case Log:
		s.log.remove(c.At, int(c.Cost))
	case Fixed, Calendar:
		if s.x <= c.At && c.At < s.y {
			s.z = max(0, s.z-c.Cost)
		}
	case Bucket:
		if x, y := s.arrival(c.Limit); x >= now {
			s.x, s.y = gain(x, y, -c.Cost, c.Limit, c.Rule.Per)
			s.z = c.Limit
		}
	}
}

// Expiry returns the time from which s says no more than the zero State.
func (s *State) Expiry(r *Rule) int64 {
	switch r.Kind {
	case Log:
		if s.log.len() == 0 {
			return 0
		}
		return s.log.at(s.log.len()-1) + r.Per
	case Bucket:
		return s.x + min(s.y, 1)
	default:
		return s.y
	}
}

// arrival returns the arrival time, whole and in parts of limit. Parts of another limit are rounded up.
func (s *State) arrival(limit int64) (x, y int64) {
	if s.z != limit {
		return s.x + min(s.y, 1), 0
	}
	return s.x, s.y
}

// gain adds to a time, whole and in parts of limit, that in which a bucket gains n permits; n may be negative.
func gain(x, y, n, limit, per int64) (int64, int64) {
	y += n * (per % limit)
	carry := floorDiv(y, limit)
	return x + n*(per/limit) + carry, y - carry*limit
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

var seed = maphash.MakeSeed()

// Identify makes scope and window the identity of r.
func (r *Rule) Identify(scope, window string) {
	id := Identity{Scope: scope, Window: window}
	r.ID, r.Hash = unique.Make(id), maphash.Comparable(seed, id)
}
