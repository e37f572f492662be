package behaviour_test

import (
	"fmt"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// runningLaw: the permits of calls that run plus cost are at most L. A call that was taken by hand ends after P at the latest, a kept one when it is
// given back. Nobody knows when that is, so a call that does not fit may ask again after 50 ms.
type runningLaw struct{ rule ratelimit.Rule }

func (l runningLaw) window() string { return fmt.Sprint("running ", l.rule.Per) }
func (l runningLaw) most() int64    { return l.rule.Limit }

func (l runningLaw) earliest(h history, now, from int64, q ask) int64 {
	if l.used(h, now)+q.cost <= l.rule.Limit {
		return from
	}
	return max(from, now+50_000)
}

func (l runningLaw) keeps(_ history, now, at int64, _ ask) bool { return at <= now }

func (l runningLaw) used(h history, t int64) (permits int64) {
	for _, e := range h {
		if !e.back && !e.returned && (e.kept || e.at+l.rule.Per.Microseconds() > t) {
			permits += e.cost
		}
	}
	return permits
}

func countsRunning(r ratelimit.Rule) bool { return r.Algorithm == ratelimit.Concurrency }
