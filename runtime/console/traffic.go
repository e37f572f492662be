package console

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// recent is what the processes declare, and what they decided in the last seconds.
type recent struct {
	sums
	rules     []ratelimit.UsedRule
	RulesSeen seen
	Counts    bool // processes count decisions
	Seen      seen // when the sums were made
}

// sums are the sums of what processes report.
type sums struct {
	*traffic.Sums
	names   map[traffic.Named]traffic.Known
	Reports int // processes whose reports are in the sums
	Senders int // processes that report
}

func (c *console) recent(ctx context.Context) (r recent) {
	r.rules, r.RulesSeen = c.known.rules.get(ctx)
	r.sums, r.Seen = c.known.sums.get(ctx)
	r.Sums = cmp.Or(r.Sums, traffic.Sum(nil, nil)) // perhaps nothing was read yet
	r.Counts = r.Senders > 0 || c.counts(ctx)
	return r
}

// counts reports whether processes count decisions. What those that are gone have counted is in the history.
func (c *console) counts(ctx context.Context) bool {
	processes, _ := c.known.processes.get(ctx)
	if slices.ContainsFunc(processes, func(p fleet.Process) bool { return p.Stats }) {
		return true
	}
	slots, _ := c.known.history.get(ctx)
	return slices.ContainsFunc(slots, func(s fleet.Slot) bool { return len(s.Rules) > 0 })
}

// sum adds up what the processes report.
func (c *console) sum(ctx context.Context) (s sums, err error) {
	rules, at := c.known.rules.get(ctx)
	processes, other := c.known.processes.get(ctx)
	if err := at.worse(other).Err; err != nil {
		return s, err
	}
	processes = slices.DeleteFunc(slices.Clone(processes), func(p fleet.Process) bool { return !p.Stats })
	reports, err := c.readReports(ctx, processes)
	s.names, s.Reports, s.Senders = traffic.Names(c.view, c.prefix, rules), len(reports), len(processes)
	s.Sums = traffic.Sum(slices.Collect(maps.Values(reports)), s.names)
	return s, err
}

const (
	maxReports = 200              // how many reports are read at once
	reportLife = 30 * time.Second // how long a report counts after which its process has said more
)

// readReports returns the reports of processes. It reads that of a process only if the process has said something since, and those first that were
// read longest ago.
func (c *console) readReports(ctx context.Context, processes []fleet.Process) (map[string]fleet.Report, error) {
	known, reports, due := c.known.reports, map[string]fleet.Report{}, []fleet.Process(nil)
	for _, p := range processes {
		report, ok := known[p.ID]
		if ok && p.At.Sub(report.Process.At).Abs() <= reportLife {
			reports[p.ID] = report
		}
		if !report.Process.At.Equal(p.At) {
			due = append(due, p)
		}
	}
	slices.SortStableFunc(due, func(a, b fleet.Process) int { return known[a.ID].Process.At.Compare(known[b.ID].Process.At) })
	due = due[:min(len(due), maxReports)]
	news, err := c.fleet.Reports(ctx, due)
	if err != nil {
		return nil, err
	}
	for _, p := range due {
		reports[p.ID] = fleet.Report{Process: p} // it may have decided nothing
	}
	for _, report := range news {
		reports[report.Process.ID] = report
	}
	c.known.reports = reports
	return reports, nil
}
