package console

import (
	"net/http"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/key"
)

type livePage struct {
	Search  string
	By      string // calls, refused or shadow
	Rules   []ofRule
	Keys    []ofKey
	Reports int
	Counts  bool // processes count decisions
	Seen    seen
}

// live shows what is decided now: the rules and the keys with the most decisions.
func (c *console) live(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	p := livePage{Search: query.Get("q"), By: query.Get("by")}
	if p.By != "refused" && p.By != "shadow" {
		p.By = "calls"
	}
	rules, _ := c.readRules(r.Context())
	reports, at := c.readReports(r.Context())
	t := sum(reports, c.names(rules))
	p.Reports, p.Seen, p.Counts = t.Reports, at, t.Reports > 0 || c.counts(r.Context())
	search := strings.ToLower(p.Search)
	p.Rules = t.topRules(p.By, func(id named) bool { return search == "" || strings.Contains(strings.ToLower(id.Rule), search) })
	p.Rules = p.Rules[:min(len(p.Rules), maxKeys)]
	p.Keys = t.topKeys(p.By, maxKeys, func(id named, shown string) bool {
		return search == "" || strings.Contains(strings.ToLower(id.Rule+" "+shown), search)
	})
	c.show(w, "live", page{Title: "Live", Screen: "live", Refresh: 2, Data: p})
}

// Shown is the key as pages show it.
func (k ofKey) Shown() string { return key.Shown(k.Key) }
