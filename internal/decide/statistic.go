package decide

import (
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// addTo adds the answers of the rules to the statistics of the fleet.
func (c *Call) addTo(s *fleet.Statistics) {
	s.Lock()
	defer s.Unlock()
	for i := range c.Asked {
		a := &c.Asked[i]
		numbers := &a.Rule.Numbers
		if a.Rule.Instance {
			continue
		}
		n := fleet.Counts{Calls: 1}
		if a.Rule.Computed {
			n.Limit = max(0, a.given)
		}
		if c.isByPolicy() {
			n.Failed = 1
		}
		switch {
		case c.err != nil || !a.Claim.Refused:
		case a.Claim.Mode == engine.Enforce:
			n.Refused = 1
			if a.Claim.Blocked {
				n.Blocked = 1
			}
		default:
			n.Shadow = 1
		}
		s.Count(numbers.Hash(), numbers.Name, numbers.Tag, a.Claim.Subject, n)
	}
}
