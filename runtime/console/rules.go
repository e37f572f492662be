package console

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// ruleRow is a rule as declared, and as it is in force for all keys.
type ruleRow struct {
	ratelimit.UsedRule
	InForce   ratelimit.Rule
	Setting   *fleet.Setting // the override for all keys, or nil
	ByKey     int            // settings of single keys
	Rates     rates
	Disagrees bool // processes declare different limits
}

// Declared is the limit that the program declares. During a rollout there may be several: "10 (1 process), 100 (2 processes)".
func (r ruleRow) Declared() string {
	switch {
	case r.Varies:
		return "by the call"
	case len(r.Limits) < 2:
		return thousands(r.Limit)
	}
	var all []string
	for _, limit := range slices.Sorted(maps.Keys(r.Limits)) {
		all = append(all, fmt.Sprintf("%s (%s)", thousands(limit), count(r.Limits[limit], "process")))
	}
	return strings.Join(all, ", ")
}

// Effective is the limit in force for keys that have no setting of their own.
func (r ruleRow) Effective() string {
	switch {
	case r.Setting == nil:
		return "as declared"
	case r.Setting.Factor != 0 && r.Varies:
		return fmt.Sprintf("%g times that", r.Setting.Factor)
	}
	return thousands(r.InForce.Limit)
}

type rulesPage struct {
	Search      string
	Rules       list[ruleRow]
	RulesSeen   seen
	Reports     int
	Counts      bool // processes count decisions
	TrafficSeen seen
}

func (c *console) rules(w http.ResponseWriter, r *http.Request) {
	p := rulesPage{Search: r.URL.Query().Get("q")}
	var rows []ruleRow
	rows, p.RulesSeen, p.Reports, p.TrafficSeen = c.ruleRows(r.Context(), func(rule *ratelimit.UsedRule) bool {
		return strings.Contains(strings.ToLower(rule.Name+" "+rule.Key), strings.ToLower(p.Search))
	})
	p.Rules, p.Counts = part(r, rows, maxRows), p.Reports > 0 || c.counts(r.Context())
	c.show(w, "rules", page{Title: "Rules", Screen: "rules", Refresh: 10, Data: p})
}

// ruleRows returns the rules that are wanted, and how many processes report their traffic.
func (c *console) ruleRows(ctx context.Context, wanted func(*ratelimit.UsedRule) bool) (rows []ruleRow, at seen, reports int, trafficAt seen) {
	rules, at := c.readRules(ctx)
	c.follow(ctx)
	found, trafficAt := c.readReports(ctx)
	t := sum(found, c.names(rules))
	in := c.fleet.InForce()
	for i := range rules {
		if !wanted(&rules[i]) {
			continue
		}
		row := ruleRow{UsedRule: rules[i], Disagrees: len(rules[i].Limits) > 1}
		row.InForce, _ = c.view.RuleFor(ratelimit.Request{Rule: row.Rule})
		row.Rates = t.of(named{row.Name, row.Window()})
		if in != nil {
			if of := in.Of(row.Name); of != nil {
				row.Setting, row.ByKey = of.All, of.Len()
			}
		}
		rows = append(rows, row)
	}
	return rows, at, t.Reports, trafficAt
}

type rulePage struct {
	Name        string
	Rules       []ruleRow
	RulesSeen   seen
	Settings    list[*fleet.Setting] // of the rule and its keys
	Charts      []chart
	ChartsSeen  seen
	Heaviest    []ofKey
	Refused     []ofKey
	TrafficSeen seen
	Counts      bool // processes count decisions
}

func (c *console) rule(w http.ResponseWriter, r *http.Request) {
	c.showRule(w, r, r.URL.Query().Get("name"), page{})
}

// showRule shows the rules of a name.
func (c *console) showRule(w http.ResponseWriter, r *http.Request, name string, shown page) {
	ctx, p := r.Context(), rulePage{Name: name}
	reporting := 0
	p.Rules, p.RulesSeen, reporting, p.TrafficSeen = c.ruleRows(ctx, func(rule *ratelimit.UsedRule) bool { return rule.Name == name })
	p.Counts = reporting > 0 || c.counts(ctx)
	if len(p.Rules) == 0 && p.RulesSeen.Err == nil {
		w.WriteHeader(http.StatusNotFound)
	}
	settings, _ := c.follow(ctx)
	p.Settings = part(r, slices.DeleteFunc(settings, func(s *fleet.Setting) bool { return s.Rule != name }), maxKeys)
	rules, _ := c.readRules(ctx)
	names := c.names(rules)
	wanted := func(n fleet.RuleCounts) bool { return names[named{n.Name, n.Tag}].Rule == name }
	slots, at := c.readHistory(ctx)
	p.Charts, p.ChartsSeen = []chart{drawn("Decisions", slots, calls, wanted), drawn("Refusals", slots, refused, wanted)}, at
	reports, _ := c.readReports(ctx)
	t := sum(reports, names)
	of := func(id named, _ string) bool { return id.Rule == name }
	p.Heaviest, p.Refused = t.topKeys("calls", 10, of), t.topKeys("refused", 10, of)
	shown.Title, shown.Screen, shown.Data = name, "rules", p
	if r.Method == http.MethodGet {
		shown.Refresh = 5
	}
	c.show(w, "rule", shown)
}
