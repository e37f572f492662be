package engine

import (
	"slices"
	"sort"
)

// amounts is a sliding window for large costs: it has one entry for each call, not one for each permit. Entries with a future time belong to
// waiting calls, and already count.
//
// While fewer than mostExact entries count, the window is exact. Beyond that, charges within the same 2,048th of the period share an entry at the
// end of that span. So the limit is never exceeded, a retry delay is at most a 2,048th of the period too long, and without waiting
// calls there are at most about 4,096 entries.
type amounts struct {
	entries []amount // their times ascend
	total   int64    // the permits of all entries
}

// amount is the charge of one call, or of several. It has no permits if they were given back.
type amount struct{ at, permits int64 }

const (
	mostExact  = 2048 // entries
	mostPlaces = 4096 // entries in the window; with so many, a call that waits gets no place and asks again
)

func newAmounts(*Rule) State { return new(amounts) }

func amountTerms(c *Claim, _, _ int64) Terms { return Terms{A: c.Rule.Per} }

// workOnAmounts is for some entries that are read and written, and for those that are moved when a state grows.
func workOnAmounts(*Claim, int64) int64 { return 8 }

func (a *amounts) Earliest(c *Claim, n, _, from int64) int64 {
	excess := a.total + n - c.Limit
	for i := 0; excess > 0 && i < len(a.entries); i++ {
		excess -= a.entries[i].permits
		from = max(from, a.entries[i].at+c.Rule.Per)
	}
	return from
}

// gone returns how many entries have left the window, and their permits.
func (a *amounts) gone(c *Claim, now int64) (entries int, permits int64) {
	for entries < len(a.entries) && a.entries[entries].at <= now-c.Rule.Per {
		permits += a.entries[entries].permits
		entries++
	}
	return entries, permits
}

func (a *amounts) Room(c *Claim, now int64) int64 {
	_, permits := a.gone(c, now)
	return c.Limit - a.total + permits
}

func (a *amounts) Full(c *Claim, now int64) int64 { return max(now, a.Expiry(c.Rule)) }

func (a *amounts) More(c *Claim, room, now int64) int64 { return moreByLimit(a, c, room, now) }

// Reserves is false if there are too many entries in the window.
func (a *amounts) Reserves(c *Claim, now, at int64) bool {
	gone, _ := a.gone(c, now)
	return len(a.entries)-gone < mostPlaces && a.Earliest(c, c.Cost, now, at) == at
}

// Commit keeps at most MaxAmounts permits, the newest ones, as the costs of triggers and settlements have no bound. They may be more than the
// limit: other programs may have a higher one, and a settlement may be given back.
func (a *amounts) Commit(c *Claim, n, now, at int64) bool {
	if recorded := a.commit(c, min(n, MaxAmounts), now, at); recorded != at {
		c.At, c.Dated = recorded, true
	}
	a.trim(MaxAmounts)
	return true
}

// commit charges n permits, and returns the time at which they are recorded.
func (a *amounts) commit(c *Claim, n, now, at int64) int64 {
	a.drop(a.gone(c, now))
	if len(a.entries) >= mostExact {
		step := c.Rule.Per/mostExact + 1
		at += step - 1 - at%step
	}
	a.total += n
	i := a.search(at)
	if i < len(a.entries) && a.entries[i].at == at {
		a.entries[i].permits += n
		return at
	}
	a.grow()
	a.entries = slices.Insert(a.entries, i, amount{at, n})
	return at
}

// search returns how many entries are before a time.
func (a *amounts) search(at int64) int {
	return sort.Search(len(a.entries), func(i int) bool { return a.entries[i].at >= at })
}

// drop removes the oldest entries, which have the given number of permits.
func (a *amounts) drop(entries int, permits int64) {
	if entries > 0 {
		a.entries = slices.Delete(a.entries, 0, entries)
		a.total -= permits
	}
}

// trim removes the oldest permits, so that at most a given number is left.
func (a *amounts) trim(left int64) {
	excess, i := a.total-left, 0
	for ; excess > 0 && a.entries[i].permits <= excess; i++ {
		excess -= a.entries[i].permits
	}
	if excess > 0 {
		a.entries[i].permits -= excess
	}
	a.total = min(a.total, left)
	a.drop(i, 0)
}

func (a *amounts) Charge(c *Claim, n, now int64) { a.Commit(c, n, now, now) }

// GiveBack also gives back the permits of a place when other calls have later places. So do fixed windows.
func (a *amounts) GiveBack(c *Claim, n, now int64, _ bool) {
	if c.At > now-c.Rule.Per {
		a.giveNewest(n, a.search(c.At), a.search(c.At+1))
	}
}

func (a *amounts) give(c *Claim, n, now int64) {
	gone, _ := a.gone(c, now)
	a.giveNewest(n, gone, a.search(now+1))
}

// giveNewest gives back up to n permits of the entries from index i on and before index j, the newest ones. It removes the newest entries of the
// state if they have no permits then.
func (a *amounts) giveNewest(n int64, i, j int) {
	for k := j - 1; k >= i; k-- {
		given := min(n, a.entries[k].permits)
		a.entries[k].permits -= given
		a.total -= given
		n -= given
	}
	for k := len(a.entries) - 1; k >= 0 && a.entries[k].permits == 0; k-- {
		a.entries = a.entries[:k]
	}
}

func (a *amounts) Expiry(r *Rule) int64 {
	if n := len(a.entries); n > 0 {
		return a.entries[n-1].at + r.Per
	}
	return longAgo
}

// room returns the capacity after one more entry is added. It grows by a quarter, so that an entry takes at most about 20 bytes.
func (a *amounts) room() int {
	if n := len(a.entries); n == cap(a.entries) {
		return n + max(4, n/4)
	}
	return cap(a.entries)
}

func (a *amounts) grow() {
	if room := a.room(); room > cap(a.entries) {
		a.entries = append(make([]amount, 0, room), a.entries...)
	}
}
