package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// ruleRow is a rule as declared, and as it is in force for all keys.
type ruleRow struct {
	ratelimit.UsedRule
	InForce ratelimit.Rule
	Setting *fleet.Setting // the override for all keys, or nil
	ByKey   int            // settings of single keys
	Rates   traffic.Rates
}

// Disagrees reports whether processes declare different limits.
func (r ruleRow) Disagrees() bool { return len(r.Limits) > 1 }

// Declared is the limit that the program declares. During a rollout there may be several: "10 (1 process), 100 (2 processes)".
func (r ruleRow) Declared() string {
	switch {
	case r.Computed:
		return "computed"
	case !r.Disagrees():
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
	case r.InForce.Computed && r.Setting.Factor != 0:
		return fmt.Sprintf("%g times that", r.Setting.Factor)
	case r.InForce.Computed:
		return "computed"
	}
	return thousands(r.InForce.Limit)
}

type rulesPage struct {
	recent
	Search  string
	Mode    string // of the rules that are wanted; "" means any
	OnlySet bool   // rules without settings are not wanted
	By      string // the name of a column
	Rules   list[ruleRow]
}

// Modes are the modes that rules can have.
func (rulesPage) Modes() []ratelimit.Mode {
	return []ratelimit.Mode{ratelimit.ModeEnforce, ratelimit.ModeShadow, ratelimit.ModeTrigger}
}

// Sorts are the names of the columns.
func (rulesPage) Sorts() []string { return []string{"name", "decisions", "refused"} }

// Filtered reports whether some rules are not wanted.
func (p *rulesPage) Filtered() bool { return p.Search != "" || p.Mode != "" || p.OnlySet }

func (p *rulesPage) wants(row ruleRow) bool {
	return strings.Contains(strings.ToLower(row.Name+" "+row.Key), strings.ToLower(p.Search)) &&
		(p.Mode == "" || p.Mode == row.InForce.Mode.String()) && (!p.OnlySet || row.Setting != nil || row.ByKey > 0)
}

func (c *console) rules(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	_, at := c.follow(ctx)
	query := r.URL.Query()
	p := &rulesPage{recent: c.recent(ctx), Search: query.Get("q"), Mode: query.Get("mode"), OnlySet: query.Get("settings") != "", By: query.Get("by")}
	p.Seen = p.Seen.worse(p.RulesSeen).worse(at)
	rows := c.rows(&p.recent, p.wants)
	if by := traffic.Columns[p.By]; by != nil {
		slices.SortStableFunc(rows, func(a, b ruleRow) int { return cmp.Compare(by(b.Rates), by(a.Rates)) })
	}
	p.Rules = part(rows, maxRows, "rules", query)
	c.show(w, "rules", page{Title: "Rules", Screen: "rules", Refresh: 10, Data: p})
}

// rows returns the rules that are wanted.
func (c *console) rows(lately *recent, wanted func(ruleRow) bool) (rows []ruleRow) {
	in := c.fleet.InForce()
	for i := range lately.rules {
		rule := &lately.rules[i]
		row := ruleRow{UsedRule: *rule}
		row.InForce, _ = c.view.RuleFor(ratelimit.Request{Rule: row.Rule})
		row.Rates = lately.Of(traffic.Named{Rule: row.Name, Window: row.InForce.Window()})
		of := in.Of(fleet.SettingName(row.Name))
		row.Setting, row.ByKey = of.All, of.Len()
		if wanted(row) {
			rows = append(rows, row)
		}
	}
	return rows
}

type rulePage struct {
	recent
	Name     string
	Rules    []ruleRow
	Settings list[*fleet.Setting] // of the rule and its keys

	SettingsSeen seen
	Charts       []chart
	ChartsSeen   seen
	Heaviest     []traffic.OfKey
	Refused      []traffic.OfKey
}

func (c *console) rule(w http.ResponseWriter, r *http.Request) {
	c.showRule(w, r, r.URL.Query().Get("name"), page{})
}

// showRule shows the rules of a name.
func (c *console) showRule(w http.ResponseWriter, r *http.Request, name string, shown page) {
	ctx := r.Context()
	p := rulePage{recent: c.recent(ctx), Name: name}
	settings, at := c.follow(ctx)
	p.SettingsSeen, p.RulesSeen = at, p.RulesSeen.worse(at)
	p.Rules = c.rows(&p.recent, func(row ruleRow) bool { return row.Name == name })
	if len(p.Rules) == 0 && p.RulesSeen.Err == nil {
		w.WriteHeader(http.StatusNotFound)
	}
	settings = slices.DeleteFunc(settings, func(s *fleet.Setting) bool { return s.Rule != fleet.SettingName(name) })
	p.Settings = part(settings, maxKeys, "rule", url.Values{"name": {name}, "from": r.URL.Query()["from"]})
	slots, at := c.known.history.get(ctx)
	p.ChartsSeen = at
	rules := map[traffic.Named]string{}
	p.Charts = charts(slots, func(n fleet.RuleCounts) bool {
		id := traffic.Named{Rule: n.Name, Window: n.Tag}
		if _, found := rules[id]; !found {
			rules[id] = traffic.RuleOf(id, p.names)
		}
		return rules[id] == name
	})
	ofRule := func(k *traffic.OfKey) bool { return k.Rule == name }
	p.Heaviest = p.Keys(traffic.Columns["decisions"], 10, ofRule)
	p.Refused = p.Keys(traffic.Columns["refused"], 10, ofRule)
	shown.Title, shown.Screen, shown.Data = name, "rules", p
	shown.Back = []hidden{{"page", "rule"}, {"name", name}}
	for _, row := range p.Rules {
		shown.Choices = append(shown.Choices, row.Rule)
	}
	shown.Chosen = shown.Form.Get("rule")
	if r.Method == http.MethodGet && len(p.Rules) > 0 {
		shown.Refresh = 5
	}
	c.show(w, "rule", shown)
}
