package console

import (
	"context"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// recent is what the processes declare, and what they decided in the last seconds.
type recent struct {
	*traffic.Sums
	names     map[traffic.Named]traffic.Named
	rules     []ratelimit.UsedRule
	RulesSeen seen
	Reports   int  // processes that report
	Counts    bool // processes count decisions
	Seen      seen // when the reports were read
}

func (c *console) recent(ctx context.Context) (r recent) {
	r.rules, r.RulesSeen = c.readRules(ctx)
	r.names = traffic.Names(c.view, c.prefix, r.rules)
	reports, at := c.readReports(ctx)
	r.Sums, r.Reports, r.Seen = traffic.Sum(reports, r.names), len(reports), at
	r.Counts = r.Reports > 0 || c.counts(ctx)
	return r
}

// counts reports whether processes count decisions. What those that are gone have counted is in the history.
func (c *console) counts(ctx context.Context) bool {
	processes, _ := c.readProcesses(ctx)
	if slices.ContainsFunc(processes, func(p fleet.Process) bool { return p.Stats }) {
		return true
	}
	slots, _ := c.readHistory(ctx)
	return slices.ContainsFunc(slots, func(s fleet.Slot) bool { return len(s.Rules) > 0 })
}
