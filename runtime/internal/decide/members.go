package decide

import "slices"

// members is when each member was admitted. One that is known costs nothing.
type members struct {
	admitted map[string]int64
	stop     int64 // of the calendar window
}

// since returns the time after which members count.
func since(c *Claim, now int64) int64 {
	if c.Rule.Kind == DailyMembers {
		start, _ := c.Rule.Schedule.Window(now)
		return start - 1
	}
	return now - c.Rule.Per
}

func (m *members) Earliest(c *Claim, now int64) int64 {
	after := since(c, now)
	if m.admitted[c.Member] > after {
		return now
	}
	var times []int64
	for _, at := range m.admitted {
		if at > after {
			times = append(times, at)
		}
	}
	if int64(len(times)) < c.Limit {
		return now
	}
	if c.Rule.Kind == DailyMembers {
		_, stop := c.Rule.Schedule.Window(now)
		return stop
	}
	slices.Sort(times)
	return times[len(times)-int(c.Limit)] + c.Rule.Per
}

func (m *members) Commit(c *Claim, _, at int64) (used int64) {
	after := since(c, at)
	if m.admitted[c.Member] > after {
		c.Charged = false
		return 0
	}
	for member, t := range m.admitted {
		if t <= after {
			delete(m.admitted, member)
		}
	}
	m.admitted[c.Member] = at
	m.stop = at + c.Rule.Per
	if c.Rule.Kind == DailyMembers {
		_, m.stop = c.Rule.Schedule.Window(at)
	}
	return int64(len(m.admitted))
}

func (m *members) Return(c *Claim, _ int64) {
	if m.admitted[c.Member] == c.At {
		delete(m.admitted, c.Member)
	}
}

func (m *members) Expiry(*Rule) int64 { return m.stop }
