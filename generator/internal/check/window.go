package check

import (
	"time"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// smallLimit is up to where the calls around the end of a fixed window are worth a warning: whoever allows so few means them
// one by one.
const smallLimit = 10

// boundaryBurst warns of a fixed window with a small limit: all but the first of its calls may come at its end, and as many as the
// limit right behind it. A name says that this is meant.
func (a *analysis) boundaryBurst(r *model.Rule) {
	limit, known := limitOf(r)
	small := known && 1 < limit && limit <= smallLimit
	if r.Limit.Algorithm != ratelimit.FixedWindow || r.Limit.Mode == ratelimit.ModeTrigger || !small || r.Rule.Text("name") != "" {
		return
	}
	rule := r.Limit
	rule.Algorithm = ratelimit.SlidingWindow
	a.found.Warn(argument(r, "algorithm"), "up to %d permits can pass around the end of a fixed window of %d; sliding-window keeps to %d in any %s",
		2*limit-1, limit, limit, rule.Window())
}

// longLease warns of a lease after which much less is admitted than the limit says: permits of a sliding window leave it up to a lease
// later, and a bucket goes without what it gains in up to two leases. The leases of other windows end with them.
func (a *analysis) longLease(r *model.Rule) {
	rule, longest, advice := r.Limit, r.Limit.Per/2, ""
	switch limit, known := limitOf(r); {
	case rule.Algorithm == ratelimit.FixedWindow || rule.Cron != "":
		return
	case rule.Algorithm == ratelimit.TokenBucket:
		advice = ", or a larger burst"
		if rule.Burst > 0 && known && limit > 0 {
			longest = time.Duration(float64(longest) / float64(limit) * float64(rule.Burst))
		}
	}
	if rule.Lease > longest {
		a.found.Warn(argument(r, "lease"), "lease: permits taken ahead for %s come back too late for the limit to be reached; expected at most %s%s",
			period.Format(rule.Lease), period.Format(longest), advice)
	}
}
