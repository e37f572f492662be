package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// nowPage says whether all is well.
type nowPage struct {
	recent
	operate.Judgement
	processes     []process
	Groups        list[*group] // of the processes
	ProcessesSeen operate.Seen
	Settings      list[*fleet.Setting]
	SettingsSeen  operate.Seen
	Shadow        []ratelimit.UsedRule // rules that refuse nothing
	Charts        []chart
	ChartsSeen    operate.Seen
	ByPolicy      int64 // decisions of the failure policies while the charts last
}

// Worst is the worst problem, or nil if all is well.
func (p *nowPage) Worst() *operate.Problem {
	if len(p.Problems) == 0 {
		return nil
	}
	return &p.Problems[0]
}

// Store says in a word or two how the store is.
func (p *nowPage) Store() string {
	failing := func(one operate.Problem) bool {
		return one.ID == operate.StoreDown && one.Level == operate.Bad && one.Subject == ""
	}
	switch {
	case p.HealthSeen.IsSlow():
		return "slow"
	case p.HealthSeen.Err != nil:
		return "not answering"
	case p.Health.Full:
		return "full"
	case slices.ContainsFunc(p.Problems, failing):
		return "failing"
	}
	return "up"
}

func (c *console) now(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	p := &nowPage{Judgement: c.prefix.Judge(ctx), recent: c.recent(ctx)}
	settings, at := c.prefix.InForce(ctx)
	p.Settings, p.SettingsSeen = part(settings, maxKeys, "./", r.URL.Query()), at
	p.addProcesses(ctx, c)
	rules, _ := c.prefix.Rules(ctx)
	for _, rule := range rules {
		if rule.Mode != ratelimit.ModeEnforce && len(p.Shadow) < maxRows {
			p.Shadow = append(p.Shadow, rule)
		}
	}
	slots, at := c.prefix.History(ctx)
	p.Charts, p.ChartsSeen = charts(slots, func(fleet.RuleCounts) bool { return true }), at
	for _, s := range slots {
		for _, r := range s.Rules {
			p.ByPolicy += r.Failed
		}
	}
	c.show(ctx, w, "now", page{Title: "Now", Screen: "./", Refresh: 5, Data: p})
}

// process is a process of the fleet.
type process struct {
	operate.ProcessState
	Age     time.Duration // since it started
	Blamed  bool          // a problem names it
	Faulted bool          // something is wrong with it
}

// Processes is how many processes there are.
func (p *nowPage) Processes() int { return len(p.processes) }

// maxGroups bounds the groups of processes that the page shows.
const maxGroups = 50

func (p *nowPage) addProcesses(ctx context.Context, c *console) {
	found, at := c.prefix.ProcessStates(ctx)
	p.ProcessesSeen = at
	for _, one := range found {
		name := one.String()
		blamed, faulted := false, one.CallsFail() || one.Setting != "" || one.Lost > 0 || one.IsSkewed()
		for _, problem := range p.Problems {
			if strings.Contains(problem.Subject, name) || strings.Contains(problem.Text, name) {
				blamed, faulted = true, faulted || problem.Level > operate.Note
			}
		}
		p.processes = append(p.processes, process{one, c.prefix.Now().Sub(one.Start), blamed, faulted})
	}
	groups := grouped(p.processes)
	p.Groups = list[*group]{Rows: groups[:min(len(groups), maxGroups)], Total: len(groups)}
}

// group is the processes of one program and build.
type group struct {
	Program, Build string
	Total, Faulted int
	Rows           []process // the first of them, those that problems name before others
}

// Of identifies the group on the page.
func (g group) Of() string { return g.Program + " " + g.Build }

// grouped puts processes into groups, and those with faults first. The groups together have maxRows rows: one for each process that a problem names.
func grouped(all []process) (groups []*group) {
	rank := func(p process) int {
		switch {
		case p.Blamed:
			return 0
		case p.Faulted:
			return 1
		}
		return 2
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b process) int { return cmp.Compare(rank(a), rank(b)) })
	by := map[string]*group{}
	for i, p := range all {
		g := by[p.Program+" "+p.Build]
		if g == nil {
			g = &group{Program: p.Program, Build: p.Build}
			by[g.Of()] = g
			groups = append(groups, g)
		}
		g.Total++
		if p.Faulted {
			g.Faulted++
		}
		if i < maxRows {
			g.Rows = append(g.Rows, p)
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Or(cmp.Compare(b.Faulted, a.Faulted), cmp.Compare(a.Of(), b.Of())) })
	return groups
}
