package ratelimit

import "time"

// farthest is how far ahead the cron package looks for the next fire time.
const farthest = 5 * 366 * 24 * time.Hour

// Boundaries returns the next n times after now at which the rule's calendar windows end, in the rule's time zone. It returns fewer if five
// years pass between two of them. It returns none for a rule without Cron, because its windows depend on the calls. The error is a *RuleError.
func (r Rule) Boundaries(now time.Time, n int) ([]time.Time, error) {
	p, err := r.prepare("")
	if err != nil || r.Cron == "" {
		return nil, err
	}
	var ends []time.Time
	for last := now; len(ends) < n; {
		_, stop := p.numbers.Schedule.Window(last.UnixMicro())
		end := time.UnixMicro(stop).In(p.numbers.Schedule.Zone)
		if end.Sub(last) > farthest {
			break
		}
		ends, last = append(ends, end), end
	}
	return ends, nil
}
