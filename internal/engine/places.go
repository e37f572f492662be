package engine

import (
	"slices"
	"sort"
)

// interval is a series of free places: each begins where the one before ends, with no call's place between them. A free place was given up
// while others were after it. Its permits stay charged, because the places after it were computed with that charge. A later call may use it.
//
// For a sliding window, at is the time of the last permit. For a bucket, at + parts/limit is when the bucket would be full again after the last
// permit.
type interval struct {
	at      int64
	parts   int64 // microseconds times limit
	permits int64
	limit   int64 // of a bucket, at which the places were given
}

// intervals are those of one state, in the order of their times. A state keeps maxIntervals. Any further free place stays charged, and
// cannot be used.
type intervals []interval

const maxIntervals = 1024

// maxLooks bounds how many intervals a call looks at, how many groups of permits in each, and how many times it compares its rules with
// each other.
const maxLooks = 16

// placer is a State that keeps places in an order in which they can become free.
type placer interface {
	State

	// isLastCharge reports whether n permits that c was charged for a future time are the latest charge, so that no call has a place after them.
	isLastCharge(c *Claim, n, now int64) bool

	// interval returns the place of n permits that c was charged for a future time.
	interval(c *Claim, n, now int64) interval

	// touch reports whether b begins where a ends, or before.
	touch(c *Claim, a, b interval) bool

	// isLastInterval reports whether an interval is the latest charge.
	isLastInterval(c *Claim, i interval, now int64) bool

	// pop gives back the latest n permits.
	pop(c *Claim, n, now int64)

	// reach returns a lower bound for the at of intervals in which there is a place for the claim at a time or later.
	reach(c *Claim, from int64) int64

	// placeIn looks for the first place for the claim in an interval, at a time or later. It returns how many permits the interval has from
	// there on, and when the place is.
	placeIn(c *Claim, i interval, from int64) (left, at int64, ok bool)

	// without returns an interval without its last n permits.
	without(c *Claim, i interval, n int64) interval
}

// search returns the index of the first interval that ends at a time or later.
func (list intervals) search(at int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].at >= at })
}

// insert adds the interval of a place that became free, and joins it with its neighbours. No two intervals have the same time, because the
// sorted set of the script would not keep their order.
func (list *intervals) insert(p placer, c *Claim, i interval, now int64) {
	if i.permits == 0 {
		return
	}
	*list = slices.Delete(*list, 0, list.search(now+1))
	from := list.search(i.at)
	to := from
	if to < len(*list) {
		after := (*list)[to]
		if p.touch(c, i, after) {
			after.permits += i.permits
			i = after
			to++
		} else if after.at == i.at {
			return
		}
	}
	if from > 0 && p.touch(c, (*list)[from-1], i) {
		from--
		i.permits += (*list)[from].permits
	}
	if from < to || len(*list) < maxIntervals {
		*list = slices.Replace(*list, from, to, i)
	}
}

// find returns the first place for a claim, at a time or later: the index of its interval, how many permits the interval has from there on,
// and when it is.
func (list intervals) find(p placer, c *Claim, from int64) (index int, left, at int64, ok bool) {
	index = list.search(p.reach(c, from))
	for last := min(index+maxLooks, len(list)); index < last; index++ {
		if left, at, ok = p.placeIn(c, list[index], from); ok {
			return index, left, at, true
		}
	}
	return 0, 0, 0, false
}

// cut takes n permits out of an interval in which find has found a place. The interval has left permits from that place on, and the first n of
// them go. The places before them stay free as one interval, those after them as another. The places before them stay charged instead if their
// interval would not be the only one of its time, or would not be in order.
func (list *intervals) cut(p placer, c *Claim, index int, left, n, now int64) {
	var parts []interval
	before, after := p.without(c, (*list)[index], left), (*list)[index]
	previous := now
	if index > 0 {
		previous = max(now, (*list)[index-1].at)
	}
	if after.permits = left - n; after.permits > 0 {
		parts = append(parts, after)
	}
	if before.permits > 0 && previous < before.at && before.at < after.at && len(*list)+len(parts) <= maxIntervals {
		parts = slices.Insert(parts, 0, before)
	}
	*list = slices.Replace(*list, index, index+1, parts...)
}

// take takes the free place of a claim at a time, and reports whether there is one. The rest of a larger place stays free. If there is none, the
// claim is charged as a new place at that time. take then divides an interval that spans the time, so that no interval has a call's place in it.
func (cell *Cell) take(c *Claim, at, now int64) bool {
	if cell.FreePlaces() == 0 {
		return false
	}
	p, free := cell.State(c.Rule).(placer), cell.Rare.free
	index, left, first, ok := free.find(p, c, at)
	if ok && first == at {
		free.cut(p, c, index, left, c.Cost, now)
		return true
	}
	one := *c
	one.Cost = 1
	if index, left, _, ok = free.find(p, &one, at); ok {
		free.cut(p, c, index, left, 0, now)
	}
	return false
}

// next returns the first time, not before from, at which a rule has a free place for a claim, or admits it after all its places.
func (cell *Cell) next(c *Claim, now, from int64) (at int64, free, ok bool) {
	state := cell.State(c.Rule)
	if b, ok := state.(*bucket); ok {
		state = b.at(c, now) // a peek does not adapt the bucket
	}
	if p, ok := state.(placer); ok {
		if _, _, at, free = cell.free().find(p, c, from); free && at == from {
			return at, true, true
		}
	}
	after := state.Earliest(c, c.Cost, now, from)
	if state.Reserves(c, now, after) && !(free && at <= after) {
		return after, false, true
	}
	return at, free, free
}

// freePlace returns the time of the first free place that a call can use. Every other rule must have a free place at that time, too, or
// admit the call then, after all its own places.
func (call *Call) freePlace(cells []*Cell, now int64) (at int64, ok bool) {
	for i := range call.Claims {
		c := &call.Claims[i]
		ok = ok || c.Wait > 0 && c.Earliest > now && cells[i].FreePlaces() > 0
	}
	if !ok {
		return 0, false
	}
	at = now + 1
	for range maxLooks {
		from, usable := at, false
		for i := range call.Claims {
			c := &call.Claims[i]
			if c.Mode != Enforce {
				continue
			}
			next, free, ok := cells[i].next(c, now, at)
			if !ok || c.Blocked || c.Earliest > now && next > now+c.Wait {
				return 0, false
			}
			at, usable = next, usable || free && c.Earliest > now
		}
		if at == from {
			return at, usable
		}
	}
	return 0, false
}

// giveBack gives back n permits of a charge. If the charge is a place, and other calls have later places, these permits become a free
// place. Otherwise the permits go back to the state. If an interval of free places is the latest charge then, it goes back as well.
func (cell *Cell) giveBack(c *Claim, n, now int64, rollback bool) {
	state := cell.State(c.Rule)
	p, ok := state.(placer)
	if ok = ok && c.At > now; ok && !p.isLastCharge(c, n, now) {
		free := cell.free()
		free.insert(p, c, p.interval(c, n, now), now)
		cell.rare().free = &free
		return
	}
	state.GiveBack(c, n, now, rollback)
	free := cell.free()
	latest := len(free) - 1
	if !ok || latest < 0 || !p.isLastInterval(c, free[latest], now) {
		return
	}
	one := *c
	one.Cost, one.Limit = 1, free[latest].limit
	if left, _, ok := p.placeIn(&one, free[latest], now+1); ok {
		p.pop(c, left, now)
	}
	*cell.Rare.free = free[:latest]
}
