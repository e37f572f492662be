package decide

import (
	"slices"
	"sort"
)

// members is when each member was admitted. One that is known costs nothing.
type members struct {
	known map[string]int64
	order []admission // of those that are known, oldest first
	stop  int64       // of the calendar window
}

type admission struct {
	member string
	at     int64
}

// since returns the time after which members count.
func since(c *Claim, now int64) int64 {
	if c.Rule.Kind == CalendarMembers {
		start, _ := c.Rule.Schedule.Window(now)
		return start - 1
	}
	return now - c.Rule.Per
}

// knows reports whether a member was admitted after a time.
func (m *members) knows(member string, after int64) bool {
	at, ok := m.known[member]
	return ok && at > after
}

// search returns how many members were admitted at a time or before.
func (m *members) search(at int64) int {
	return sort.Search(len(m.order), func(i int) bool { return m.order[i].at > at })
}

func (m *members) Earliest(c *Claim, now int64) int64 {
	after, n := since(c, now), len(m.order)
	switch {
	case m.knows(c.Member, after) || int64(n-m.search(after)) < c.Limit:
		return now
	case c.Rule.Kind == CalendarMembers:
		_, stop := c.Rule.Schedule.Window(now)
		return stop
	default:
		return m.order[n-int(c.Limit)].at + c.Rule.Per
	}
}

func (m *members) Commit(c *Claim, _, at int64) (used int64) {
	after := since(c, at)
	if m.knows(c.Member, after) {
		c.Charged = false
		return 0
	}
	gone := m.search(after)
	for _, a := range m.order[:gone] {
		delete(m.known, a.member)
	}
	m.known[c.Member] = at
	m.order = slices.Insert(m.order[gone:], m.search(at)-gone, admission{c.Member, at})
	m.stop = at + c.Rule.Per
	if c.Rule.Kind == CalendarMembers {
		_, m.stop = c.Rule.Schedule.Window(at)
	}
	return int64(len(m.order))
}

func (m *members) Return(c *Claim, _ int64) {
	if at, ok := m.known[c.Member]; ok && at == c.At {
		delete(m.known, c.Member)
		m.order = slices.DeleteFunc(m.order, func(a admission) bool { return a.member == c.Member })
	}
}

func (m *members) Expiry(*Rule) int64 { return m.stop }
