package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
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
	Groups        list[*group] // of the processes
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

// faults names what is wrong with the process.
func (p process) faults() (names []string) {
	for name, has := range map[string]bool{"store": p.Store != "", "settings": p.Setting != "", "lost": p.Lost > 0, "clock": p.IsSkewed()} {
		if has {
			names = append(names, name)
		}
	}
	return names
}

// group is the processes of one program and build.
type group struct {
	Program, Build  string
	Total, Troubled int
	Rows            []process // the first of them, those with faults before others
}

// Of identifies the group on the page.
func (g group) Of() string { return g.Program + " " + g.Build }

// grouped puts processes into groups, and those with faults first. The groups together have maxRows rows. One of them shows each kind of fault, however
// many processes have another.
func grouped(all []process) (groups []*group) {
	seen, rank := map[string]bool{}, map[string]int{}
	for _, p := range all {
		for _, fault := range p.faults() {
			rank[p.ID] = max(rank[p.ID], 1)
			if !seen[fault] {
				seen[fault], rank[p.ID] = true, 2
			}
		}
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b process) int { return cmp.Compare(rank[b.ID], rank[a.ID]) })
	by := map[string]*group{}
	for i, p := range all {
		g := by[p.Program+" "+p.Build]
		if g == nil {
			g = &group{Program: p.Program, Build: p.Build}
			by[g.Of()] = g
			groups = append(groups, g)
		}
		g.Total++
		g.Troubled += min(1, rank[p.ID])
		if i < maxRows {
			g.Rows = append(g.Rows, p)
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.Troubled, a.Troubled), cmp.Compare(a.Of(), b.Of()))
	})
	return groups
}

// Processes is how many processes there are.
func (p *nowPage) Processes() int { return len(p.processes) }

// maxGroups bounds the groups of processes that the page shows.
const maxGroups = 50

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
	groups := grouped(p.processes)
	p.Groups = list[*group]{Rows: groups[:min(len(groups), maxGroups)], Total: len(groups)}
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
	case len(p.processes) == 0:
		add("No process reports: none runs, or none can write to the store.")
	}
}
