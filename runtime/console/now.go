package console

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// nowPage says whether all is well.
type nowPage struct {
	Problems      []string
	Health        fleet.Health
	HealthSeen    seen
	processes     []process
	Processes     list[process] // the first of them
	ProcessesSeen seen
	Settings      list[*fleet.Setting]
	SettingsSeen  seen
	Shadow        []ratelimit.UsedRule // rules that refuse nothing
	Charts        []chart
	ChartsSeen    seen
	Counts        bool  // processes publish statistics
	ByPolicy      int64 // decisions of the failure policies while the charts last
}

// process is a process of the fleet with its faults.
type process struct {
	fleet.Process
	Behind int           // versions of the settings that it has not followed yet
	Age    time.Duration // since it started
}

// maxSkew is how far a process's clock may be off before the page says so.
const maxSkew = time.Second

// IsSkewed reports whether the process's clock is wrong.
func (p process) IsSkewed() bool { return p.Ahead.Abs() > maxSkew }

func (c *console) now(w http.ResponseWriter, r *http.Request) {
	c.show(w, "now", page{Title: "Now", Screen: "./", Refresh: 5, Data: c.nowPage(r)})
}

func (c *console) nowPage(r *http.Request) *nowPage {
	ctx := r.Context()
	p := &nowPage{}
	p.Health, p.HealthSeen = c.known.health.get(ctx)
	settings, at := c.follow(ctx)
	p.Settings, p.SettingsSeen = part(settings, maxKeys, "./", r.URL.Query()), at
	processes, at := c.known.processes.get(ctx)
	p.addProcesses(processes, c.fleet.Now())
	p.ProcessesSeen = at
	rules, _ := c.known.rules.get(ctx)
	for _, rule := range rules {
		if rule.Mode != ratelimit.ModeEnforce && len(p.Shadow) < maxRows {
			p.Shadow = append(p.Shadow, rule)
		}
	}
	p.addCharts(ctx, c)
	p.judge(c.fleet.Status())
	return p
}

func (p *nowPage) addProcesses(found []fleet.Process, now time.Time) {
	newest := int64(0)
	for _, f := range found {
		newest = max(newest, f.Version)
	}
	p.processes = make([]process, len(found))
	for i, f := range found {
		p.processes[i] = process{f, int(newest - f.Version), now.Sub(f.Start)}
	}
	p.Processes = list[process]{Rows: p.processes[:min(len(found), maxRows)], Total: len(found)}
}

func (p *nowPage) addCharts(ctx context.Context, c *console) {
	slots, at := c.known.history.get(ctx)
	p.Charts, p.ChartsSeen = charts(slots, func(fleet.RuleCounts) bool { return true }), at
	p.Counts = c.counts(ctx)
	for _, s := range slots {
		for _, r := range s.Rules {
			p.ByPolicy += r.Failed
		}
	}
}

// judge says what is not well.
func (p *nowPage) judge(s fleet.Status) {
	add := func(format string, args ...any) { p.Problems = append(p.Problems, fmt.Sprintf(format, args...)) }
	if err := p.HealthSeen.Err; err != nil {
		add("The store does not answer: %v. Failure policies decide.", err)
	}
	if s.Err != nil && p.HealthSeen.Err == nil {
		add("Settings cannot be read: %v", s.Err)
	}
	if n := len(s.Malformed); n > 0 {
		add("%s cannot be read; earlier ones stay in force. The first: %v", count(n, "setting"), s.Malformed[0])
	}
	addMany := func(text string, is func(process) bool) {
		n := 0
		for _, process := range p.processes {
			if is(process) {
				n++
			}
		}
		if n > 0 {
			add("%s%s", count(n, "process"), text)
		}
	}
	addMany(": the store lost settings that are still in force there. To end this state, run ratelimitctl settings import.", func(p process) bool { return p.Lost > 0 })
	addMany(" had errors of the store.", func(p process) bool { return p.Store != "" })
	addMany(" cannot read the settings.", func(p process) bool { return p.Setting != "" })
	addMany(": the clock is off by more than "+span(maxSkew)+". Decisions go by the store's clock, so they are right.", process.IsSkewed)
	switch err := p.ProcessesSeen.Err; {
	case p.HealthSeen.Err != nil:
	case err != nil:
		add("Processes cannot be read: %v", err)
	case p.Processes.Total == 0:
		add("No process reports: none runs, or none can write to the store.")
	}
}
