package engine

import (
	"slices"
	"sort"
	"strings"
)

// distinct holds the time at which each member was first admitted, in a sliding or a calendar window. A call of a known member costs nothing.
// A member is known until its first admission leaves the window.
type distinct struct {
	members map[string]int64
	order   []admission // the same members, oldest admission first

	start, stop int64 // of DistinctAnchored: the window that was opened last
}

func newDistinct(*Rule) State {
	return &distinct{members: make(map[string]int64), start: longAgo, stop: longAgo}
}

// CountsMembers reports whether the kind counts members instead of permits.
func (k Kind) CountsMembers() bool {
	return k == Distinct || k == DistinctCalendar || k == DistinctAnchored
}

func distinctTerms(c *Claim, _, _ int64) Terms { return Terms{A: c.Rule.Per, Text: []byte(c.Member)} }

func distinctCalendarTerms(c *Claim, now, _ int64) Terms {
	start, stop := c.Bounds(now)
	return Terms{A: start, B: stop, Text: []byte(c.Member)}
}

func distinctAnchoredTerms(c *Claim, now, _ int64) Terms {
	start, stop := c.Bounds(now)
	return Terms{Text: append(appendTimes(nil, start, stop), c.Member...)}
}

type admission struct {
	member string
	at     int64
}

// countsFrom returns the time after which admissions count, and the end of a calendar window. If the clock was set back, admissions of the
// next window count as well.
func (d *distinct) countsFrom(r *Rule, now int64) (since, stop int64) {
	switch {
	case r.Kind == Distinct:
		return now - r.Per, 0
	case r.Kind == DistinctCalendar:
		start, stop := r.Schedule.Window(now)
		return start - 1, stop
	case now < d.stop:
		return d.start - 1, d.stop
	}
	return now, now // no window is open
}

// search returns how many members were admitted at or before a time.
func (d *distinct) search(at int64) int {
	return sort.Search(len(d.order), func(i int) bool { return d.order[i].at > at })
}

func (d *distinct) knows(member string, since int64) bool {
	at, ok := d.members[member]
	return ok && at > since
}

// Earliest goes by the member as it will be at from: it may no longer be known then.
func (d *distinct) Earliest(c *Claim, _, now, from int64) int64 {
	since, _ := d.countsFrom(c.Rule, now)
	known := d.knows(c.Member, since)
	if c.Rule.Kind == Distinct {
		known = known && d.members[c.Member] > from-c.Rule.Per
	}
	if known {
		return from
	}
	return max(from, d.below(c.Rule, c.Limit, now))
}

// below returns when fewer than n members count: now, or when the n-th newest one leaves.
func (d *distinct) below(r *Rule, n, now int64) int64 {
	since, stop := d.countsFrom(r, now)
	if int64(len(d.order)-d.search(since)) < n {
		return now
	}
	return d.leaves(r, len(d.order)-int(n), stop)
}

// leaves returns when the i-th member leaves the window. A calendar window ends at stop.
func (d *distinct) leaves(r *Rule, i int, stop int64) int64 {
	if r.Kind == Distinct {
		return d.order[i].at + r.Per
	}
	return stop
}

func (d *distinct) Room(c *Claim, now int64) int64 {
	since, _ := d.countsFrom(c.Rule, now)
	return c.Limit - int64(len(d.order)-d.search(since))
}

func (d *distinct) Full(c *Claim, now int64) int64 { return d.below(c.Rule, 1, now) }

// More goes by the members that count, whether the claim's own is one of them or not.
func (d *distinct) More(c *Claim, room, now int64) int64 {
	if room >= c.Limit {
		return now
	}
	return d.below(c.Rule, c.Limit-room, now)
}

// Reserves is false for any later time: a member that is known now may no longer be known then.
func (d *distinct) Reserves(_ *Claim, now, at int64) bool { return at <= now }

// maxRemoved is how many members a charge removes. Others that have left the window wait for later charges.
const maxRemoved = 100

func (d *distinct) Commit(c *Claim, _, now, _ int64) bool {
	since, _ := d.countsFrom(c.Rule, now)
	if d.knows(c.Member, since) {
		return false
	}
	if c.Rule.Kind == DistinctAnchored {
		d.open(c, now)
	}
	gone := d.order[:min(d.search(since), maxRemoved)]
	for _, a := range gone {
		delete(d.members, a.member)
	}
	d.order = d.order[len(gone):]
	d.remove(c.Member)
	member := strings.Clone(c.Member)
	d.members[member] = now
	d.order = slices.Insert(d.order, d.search(now), admission{member, now})
	return true
}

// open opens the window of an anchor, unless one is open. If the clock was set back to before the open one, that one begins earlier.
func (d *distinct) open(c *Claim, now int64) {
	if now < d.stop {
		d.start = min(d.start, now)
		return
	}
	_, stop := c.Bounds(now)
	d.start, d.stop = now, stop
}

func (d *distinct) remove(member string) {
	at, ok := d.members[member]
	if !ok {
		return
	}
	i := d.search(at - 1)
	for d.order[i].member != member {
		i++
	}
	delete(d.members, member)
	d.order = slices.Delete(d.order, i, i+1)
}

// Charge does nothing: rules with Distinct are not settled.
func (d *distinct) Charge(*Claim, int64, int64) {}

// GiveBack leaves the window of an anchor open, also without members.
func (d *distinct) GiveBack(c *Claim, _, _ int64, _ bool) {
	if d.members[c.Member] == c.At {
		d.remove(c.Member)
	}
}

func (d *distinct) Expiry(r *Rule) int64 {
	if r.Kind == DistinctAnchored {
		return d.stop
	}
	n := len(d.order)
	if n == 0 {
		return longAgo
	}
	_, stop := d.countsFrom(r, d.order[n-1].at)
	return d.leaves(r, n-1, stop)
}
