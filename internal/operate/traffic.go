package operate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
)

// reports are what the processes reported last, and their sums.
type reports struct {
	by    map[string]fleet.Report // by process
	sums  *traffic.Sums
	names map[traffic.Named]traffic.Known
}

// Traffic returns what the processes decided in the last seconds, as far as they count it.
func (p *Prefix) Traffic(ctx context.Context) (*traffic.Sums, Seen) {
	r, at := p.reports.Get(ctx)
	return cmp.Or(r.sums, traffic.Sum(nil, nil)), at
}

// Publishers returns how many processes count decisions, and how many of them have reported lately.
func (p *Prefix) Publishers(ctx context.Context) (counting, reported int) {
	processes, _ := p.processes.Get(ctx)
	for _, one := range processes {
		if one.Stats {
			counting++
		}
	}
	r, _ := p.reports.Get(ctx)
	return counting, len(r.by)
}

// RuleOf returns the name of the rule that has counts with a name and a tag in keys, or "" if no rule has them, as far as Traffic has read.
func (p *Prefix) RuleOf(counts traffic.Named) string {
	r, _ := p.reports.seen(nil)
	return traffic.RuleOf(counts, r.names)
}

const (
	maxReports = 200              // how many reports are read at once
	reportLife = 30 * time.Second // how long a report counts after which its process has said more
)

// readReports reads the report of a process only if the process has said something since, and those first that were read longest ago.
func (p *Prefix) readReports(ctx context.Context, old reports) (r reports, err error) {
	rules, at := p.rules.await(ctx)
	processes, other := p.processes.await(ctx)
	if err := at.Worse(other).Err; err != nil {
		return r, err
	}
	r.by = map[string]fleet.Report{}
	var due []fleet.Process
	for _, one := range processes {
		report, ok := old.by[one.ID]
		switch {
		case !one.Stats:
			continue
		case ok && one.At.Sub(report.Process.At).Abs() <= reportLife:
			r.by[one.ID] = report
		}
		if !report.Process.At.Equal(one.At) {
			due = append(due, one)
		}
	}
	slices.SortStableFunc(due, func(a, b fleet.Process) int { return old.by[a.ID].Process.At.Compare(old.by[b.ID].Process.At) })
	due = due[:min(len(due), maxReports)]
	news, err := p.fleet.Reports(ctx, due)
	if err != nil {
		return r, err
	}
	for _, one := range due {
		r.by[one.ID] = fleet.Report{Process: one} // it may have decided nothing
	}
	for _, report := range news {
		r.by[report.Process.ID] = report
	}
	r.names = p.namesOf(rules)
	r.sums = traffic.Sum(slices.Collect(maps.Values(r.by)), r.names)
	return r, nil
}

// readHistory reads only the slots that may have changed.
func (p *Prefix) readHistory(ctx context.Context, old []fleet.Slot) ([]fleet.Slot, error) {
	var since time.Time
	if n := len(old) - 2; n > 0 {
		since = old[n].At
	}
	news, err := p.fleet.History(ctx, since)
	if err != nil || len(news) == 0 {
		return nil, err
	}
	first := news[len(news)-1].At.Add(-fleet.HistoryLength)
	old = slices.DeleteFunc(slices.Clone(old), func(s fleet.Slot) bool { return !s.At.After(first) || !s.At.Before(news[0].At) })
	return append(old, news...), nil
}
