package generator

import (
	"math/bits"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Cost is what a rule costs the Redis server.
type Cost struct {
	// Least and Most are how many commands the script issues for the rule in a call that all rules admit at once, for up to
	// 1000 permits. EVALSHA and TIME are besides, once for a call.
	Least, Most int
	// Key is the bytes of a subject's state, without its permits, for a subject of 16 bytes; Permit is what each permit in the
	// window takes, or each member, of 16 bytes as well.
	Key, Permit int64
}

// Bytes is what the state of one subject takes at a limit, when it is full. It is an estimate, within a quarter.
func (c Cost) Bytes(limit int64) int64 { return c.Key + c.Permit*limit }

// What redisstore's script.lua does for each kind of rule, and what its state takes beside the text of its key.
var (
	logCost     = Cost{Least: 3, Most: 5, Key: 165, Permit: 10} // LINDEX PTTL RPUSH, then LPOP every other time, and a rare PEXPIRE
	counterCost = Cost{Least: 2, Most: 2, Key: 80}              // GET, then SET or SETRANGE: fixed windows, calendars, buckets
	slicesCost  = Cost{Least: 2, Most: 6, Key: 110}             // GETRANGE, SETRANGE; with a new slice the ring is read and cleared, PEXPIREAT
	membersCost = Cost{Least: 1, Most: 5, Key: 95}              // ZSCORE for who is known; else ZCOUNT ZREMRANGEBYSCORE ZADD PEXPIREAT, too
	blockCost   = Cost{Least: 1, Most: 1, Key: 76}              // GET, of a key of its own, which ends in :block
)

const (
	smallSet = 128       // members up to which Redis keeps a sorted set as a list, by default
	largest  = 1_000_000 // the largest limit of the rules whose costs depend on it
)

// costOf returns what a rule costs at a limit, in calls of a method, or in requests if that is "".
func costOf(r ratelimit.Rule, limit int64, method string) Cost {
	if r.Scope == ratelimit.ScopeInstance {
		return Cost{}
	}
	c := counterCost
	switch {
	case r.Distinct != "":
		c = membersCost
		c.Permit = 122
		if limit <= smallSet {
			c.Permit = 32
		}
	case r.Algorithm == ratelimit.SlidingCounter:
		c = slicesCost
		n := r.SliceCount()
		c.Key += 8 * (n + 1)
		c.Most += int(n) // each slice that nobody called in
	case r.Cron == "" && r.Algorithm == ratelimit.SlidingWindow:
		c = logCost
		if r.Mode == ratelimit.ModeTrigger {
			c.Least, c.Most = c.Least+2, c.Most+1+bits.Len64(uint64(limit)) // LLEN, and LINDEX to see how many are used
		}
	}
	key := keyBytes(r, method)
	c.Key += key
	if r.Block > 0 {
		c.Least, c.Most, c.Key = c.Least+blockCost.Least, c.Most+blockCost.Most, c.Key+blockCost.Key+key
	}
	return c
}

// keyBytes is the length of the key that holds a rule's state.
func keyBytes(r ratelimit.Rule, method string) int64 {
	subject := "any of 16 bytes."
	if r.Key == "" {
		subject = "" // which is everybody
	}
	return int64(len(ratelimit.DefaultPrefix + ":" + r.StateKey(method, subject)))
}
