package engine

import (
	"fmt"
	"slices"
)

// concurrency holds the permits of calls that run, an entry for each call. A call gives its permits back when it ends. Those of a call whose
// process died end by themselves. Nobody knows in advance when permits come back.
type concurrency []runningCall

type runningCall struct {
	id      uint64 // see Claim.ID
	permits int64
	stop    int64 // when the permits end
}

// askEvery is how long a call that waits for others to end sleeps before it asks again, in microseconds.
const askEvery = 50_000

func newConcurrency(*Rule) State { return new(concurrency) }

func concurrencyTerms(c *Claim, _, _ int64) Terms {
	return Terms{A: c.Rule.Per, Text: TextOf(c.ID)}
}

// TextOf returns the numbers of calls in the form in which the script has them.
func TextOf(ids ...uint64) (text []byte) {
	for _, id := range ids {
		text = fmt.Appendf(text, "%016x", id)
	}
	return text
}

// sizeOfCalls counts the entries, 12 in a unit.
func sizeOfCalls(c *Claim) int64 { return c.Limit / 12 }

func (s concurrency) used(now int64) (permits int64) {
	for _, r := range s {
		if r.stop > now {
			permits += r.permits
		}
	}
	return permits
}

// Earliest returns when to ask again if the permits do not fit: after askEvery, or when the wait of the call ends if that is sooner.
func (s concurrency) Earliest(c *Claim, n, now, from int64) int64 {
	if s.used(now)+n <= c.Limit {
		return from
	}
	again := now + askEvery
	if c.Wait > 0 {
		again = min(again, now+c.Wait)
	}
	return max(from, again)
}

// Room may also be below 0 because permits were renewed after the store had lost them.
func (s concurrency) Room(c *Claim, now int64) int64 { return c.Limit - s.used(now) }

// Full returns now, as nobody knows when the permits come back.
func (s concurrency) Full(_ *Claim, now int64) int64 { return now }

// More returns now for the same reason.
func (s concurrency) More(_ *Claim, _, now int64) int64 { return now }

func (s concurrency) Reserves(_ *Claim, now, at int64) bool { return at <= now }

func (s *concurrency) Commit(c *Claim, n, now, _ int64) bool {
	s.Charge(c, n, now)
	return true
}

// Charge replaces the claim's entry, if it has one. So it also renews permits.
func (s *concurrency) Charge(c *Claim, n, now int64) {
	stop := now + c.Rule.Per
	if c.Renewed {
		stop = never
	}
	*s = append(s.others(c.ID, now), runningCall{c.ID, n, stop})
}

// GiveBack gives all permits of the claim back.
func (s *concurrency) GiveBack(c *Claim, _, now int64, _ bool) { *s = s.others(c.ID, now) }

// others returns the entries of other calls whose permits have not ended. It changes s.
func (s *concurrency) others(id uint64, now int64) concurrency {
	return slices.DeleteFunc(*s, func(r runningCall) bool { return r.id == id || r.stop <= now })
}

func (s concurrency) Expiry(*Rule) int64 {
	last := int64(longAgo)
	for _, r := range s {
		last = max(last, r.stop)
	}
	return last
}
