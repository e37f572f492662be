package decide

// log is the time of every permit in a sliding window.
type log struct{ times ring }

func (l *log) Earliest(c *Claim, now int64) int64 {
	if i := l.times.len() - int(c.Limit-c.Cost) - 1; i >= 0 {
		return max(now, l.times.at(i)+c.Rule.Per)
	}
	return now
}

func (l *log) Commit(c *Claim, now, at int64) (used int64) {
	over := l.times.len() + int(c.Cost-c.Limit)
	if c.Mode == Trigger { // it goes beyond its limit: what was there before is kept, so that a return restores the count
		used = int64(l.times.len()-l.times.search(at-c.Rule.Per+1)) + c.Cost
		over = l.times.len() - int(c.Limit)
	}
	l.times.insert(at, int(min(c.Cost, c.Limit))) // a trigger's cost has no bound
	if at > now {
		over = min(over, l.times.search(now-c.Rule.Per+1)) // others still count if this place is given back
	}
	l.times.drop(over)
	return used
}

func (l *log) Return(c *Claim, _ int64) { l.times.remove(c.At, int(c.Cost)) }

func (l *log) Expiry(r *Rule) int64 {
	if l.times.len() == 0 {
		return 0
	}
	return l.times.at(l.times.len()-1) + r.Per
}
