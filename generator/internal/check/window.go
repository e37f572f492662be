package check

import (
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
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
	a.warnf(argument(r, "algorithm"), "up to %d permits can pass around the end of a fixed window of %d; sliding-window keeps to %d in any %s",
		2*limit-1, limit, limit, rule.Window())
}
