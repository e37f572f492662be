package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type rulesPage struct {
	recent
	Search  string
	Mode    string // of the rules that are wanted; "" means any
	OnlySet bool   // rules without settings are not wanted
	By      string // the name of a column
	Rules   list[operate.Rule]
}

// Modes are the modes that rules can have.
func (rulesPage) Modes() []ratelimit.Mode {
	return []ratelimit.Mode{ratelimit.ModeEnforce, ratelimit.ModeShadow, ratelimit.ModeTrigger}
}

// Sorts are the names of the columns.
func (rulesPage) Sorts() []string { return []string{"name", "decisions", "refused"} }

// Glob is the search, if it is a glob of rules such as shop.*.
func (p *rulesPage) Glob() string {
	if !fleet.IsGlob(p.Search) {
		return ""
	}
	return p.Search
}

// Filtered reports whether some rules are not wanted.
func (p *rulesPage) Filtered() bool { return p.Search != "" || p.Mode != "" || p.OnlySet }

func (c *console) rules(w http.ResponseWriter, r *http.Request) {
	ctx, query := r.Context(), r.URL.Query()
	p := &rulesPage{recent: c.recent(ctx), Search: query.Get("q"), Mode: query.Get("mode"), OnlySet: query.Get("settings") != "", By: query.Get("by")}
	rows, at := c.prefix.RulesInForce(ctx, func(r *ratelimit.UsedRule) bool {
		return contains(r.Name+" "+r.Key, p.Search) || fleet.Covers(p.Search, r.Name)
	})
	p.Seen = p.Seen.Worse(at)
	rows = slices.DeleteFunc(rows, func(r operate.Rule) bool {
		return p.Mode != "" && p.Mode != r.InForce.Mode.String() || p.OnlySet && r.InWords() == ""
	})
	if by := traffic.Columns[p.By]; by != nil {
		slices.SortStableFunc(rows, func(a, b operate.Rule) int { return cmp.Compare(by(b.Rates), by(a.Rates)) })
	}
	p.Rules = part(rows, maxRows, "rules", query)
	c.show(ctx, w, "rules", page{Title: "Rules", Screen: "rules", Refresh: 10, Data: p})
}

type rulePage struct {
	recent
	Name      string
	Rules     []operate.Rule
	RulesSeen operate.Seen
	Settings  list[*fleet.Setting]  // overrides of the rule and its keys
	Refusals  list[operate.Refusal] // of the rule
	More      string                // why there may be more of them

	SettingsSeen operate.Seen
	RefusalsSeen operate.Seen
	Charts       []chart
	ChartsSeen   operate.Seen
	Heaviest     []traffic.OfKey
	Refused      []traffic.OfKey
}

func (c *console) rule(w http.ResponseWriter, r *http.Request) {
	c.showRule(w, r, r.URL.Query().Get("name"), page{})
}

// showRule shows the rules of a name, or those of a glob such as shop.*.
func (c *console) showRule(w http.ResponseWriter, r *http.Request, name string, shown page) {
	ctx := r.Context()
	p := rulePage{recent: c.recent(ctx), Name: name}
	p.Rules, p.RulesSeen = c.prefix.RulesInForce(ctx, func(r *ratelimit.UsedRule) bool { return fleet.Covers(name, r.Name) })
	if len(p.Rules) == 0 && p.RulesSeen.Err == nil && r.Method == http.MethodGet { // the answer of a form has a status of its own
		w.WriteHeader(http.StatusNotFound)
	}
	settings, at := c.prefix.InForce(ctx)
	p.SettingsSeen = at
	settings = slices.DeleteFunc(settings, func(s *fleet.Setting) bool {
		return s.Kind != fleet.Override || !fleet.Covers(s.Rule, fleet.SettingName(name))
	})
	p.Settings = part(settings, maxKeys, "rule", url.Values{"name": {name}, "from": r.URL.Query()["from"]})
	refusing := c.prefix.Refusing(ctx, name)
	p.Refusals, p.More, p.RefusalsSeen = part(refusing.All, maxKeys, "refusing", url.Values{"q": {name}}), refusing.More, refusing.At
	p.addTraffic(r, c)
	shown.Title, shown.Screen, shown.Data = name, "rules", p
	shown.Back = []hidden{{"page", "rule"}, {"name", name}}
	for _, row := range p.Rules {
		shown.Choices = append(shown.Choices, choiceOf(row.Rule))
	}
	if fleet.IsGlob(name) {
		shown.Choices = []choice{{name, name}}
	}
	shown.Chosen = shown.Form.Get("rule")
	if r.Method == http.MethodGet && len(p.Rules) > 0 {
		shown.Refresh = 5
	}
	c.show(ctx, w, "rule", shown)
}

// addTraffic adds the charts and the keys of the rule.
func (p *rulePage) addTraffic(r *http.Request, c *console) {
	slots, at := c.prefix.History(r.Context())
	p.ChartsSeen = at
	rules := map[traffic.Named]string{}
	p.Charts = charts(slots, func(n fleet.RuleCounts) bool {
		id := traffic.Named{Rule: n.Name, Window: n.Tag}
		if _, found := rules[id]; !found {
			rules[id] = c.prefix.RuleOf(id)
		}
		return fleet.Covers(p.Name, rules[id])
	})
	ofRule := func(k *traffic.OfKey) bool { return fleet.Covers(p.Name, k.Rule) }
	p.Heaviest = p.Keys(traffic.Columns["decisions"], 10, ofRule)
	p.Refused = p.Keys(traffic.Columns["refused"], 10, ofRule)
}
