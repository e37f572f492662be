package engine

import (
	"cmp"
	"slices"
)

// places are the free places of one state, in the order of their times. A free place was given up while others were behind it. Its permits
// stay charged, because the places behind it were computed with that charge. A later call may use it. A state keeps maxPlaces; any more are
// lost.
type places []place

type place struct{ at, permits int64 }

const maxPlaces = 64

// last returns the time of the last place.
func (p places) last() int64 {
	if len(p) == 0 {
		return longAgo
	}
	return p[len(p)-1].at
}

// find returns the index of the place at a time, or -1 if it is missing or has fewer than n permits.
func (p places) find(at, n int64) int {
	return slices.IndexFunc(p, func(q place) bool { return q.at == at && q.permits >= n })
}

// take takes n permits of the place at a time, and reports whether there were as many. The rest of the place stays free. In a Prepaid
// bucket the rest moves to the time at which the n permits are paid.
func (p *places) take(c *Claim, at, n, now int64) bool {
	i := p.find(at, n)
	if i < 0 {
		return false
	}
	rest := (*p)[i].permits - n
	*p = slices.Delete(*p, i, i+1)
	p.drop(now)
	if rest > 0 {
		p.add(at+c.debtOf(n), rest, now)
	}
	return true
}

// add frees n permits of the place at a time.
func (p *places) add(at, n, now int64) {
	p.drop(now)
	i, found := slices.BinarySearchFunc(*p, at, func(q place, at int64) int { return cmp.Compare(q.at, at) })
	switch {
	case found:
		(*p)[i].permits += n
	case len(*p) < maxPlaces:
		*p = slices.Insert(*p, i, place{at, n})
	}
}

// drop forgets the places whose time has come.
func (p *places) drop(now int64) {
	*p = slices.DeleteFunc(*p, func(q place) bool { return q.at <= now })
}

// freePlace returns the time of the first free place that a call can use. Every other rule must have a free place at that time, too, or
// admit the call then, behind all its own places.
func (call *Call) freePlace(cells []*Cell, now int64) (at int64, ok bool) {
	for i := range call.Claims {
		c := &call.Claims[i]
		if c.Mode != Enforce || c.Wait == 0 || c.Earliest <= now {
			continue
		}
		for _, p := range cells[i].Free {
			if p.at > now && (!ok || p.at < at) && call.meets(cells, now, p.at) {
				at, ok = p.at, true
			}
		}
	}
	return at, ok
}

// meets reports whether every rule of a call can use a future time: it has a free place then, or admits the call then, behind all its
// places.
func (call *Call) meets(cells []*Cell, now, at int64) bool {
	for i := range call.Claims {
		c, cell := &call.Claims[i], cells[i]
		switch {
		case c.Mode != Enforce:
		case cell.isBlocked(c.Rule, now), c.Earliest > now && at > now+c.Wait:
			return false
		case cell.Free.find(at, c.Cost) < 0 && !(c.Earliest <= at && cell.State.Reserves(c, now, at)):
			return false
		}
	}
	return true
}

// giveBack gives back n permits of a charge. If the charge is a place, and other calls have later places, these permits become a free
// place. Otherwise the permits go back to the state, and so do the permits of the free places that are the last ones then.
func (cell *Cell) giveBack(c *Claim, n, now int64, rollback bool) {
	pending := c.At > now
	if pending && !cell.State.Last(c, n, now) {
		cell.Free.add(c.At, n, now)
		return
	}
	cell.State.GiveBack(c, n, now, rollback)
	if !pending || cell.Free.last() <= now {
		return
	}
	cell.Free.drop(now)
	for len(cell.Free) > 0 {
		p := cell.Free[len(cell.Free)-1]
		free := Claim{Rule: c.Rule, Limit: c.Limit, Burst: c.Burst, At: p.at}
		if !cell.State.Last(&free, p.permits, now) {
			return
		}
		cell.State.GiveBack(&free, p.permits, now, false)
		cell.Free = cell.Free[:len(cell.Free)-1]
	}
}
