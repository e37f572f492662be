package console

import (
	"net/http"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/traffic"
)

type livePage struct {
	recent
	Search string
	By     string // the name of a column
	Rules  []traffic.OfRule
	Keys   []traffic.OfKey
}

// Sorts are the names of the columns.
func (livePage) Sorts() []string { return []string{"decisions", "refused", "failed", "shadow", "rule"} }

// live shows what is decided now: the rules and the keys with the most decisions. The search is for rules, because it is in the URL.
func (c *console) live(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	p := livePage{recent: c.recent(r.Context()), Search: query.Get("q"), By: query.Get("by")}
	if traffic.Columns[p.By] == nil {
		p.By = "decisions"
	}
	by, wanted := traffic.Columns[p.By], func(n traffic.Named) bool {
		return strings.Contains(strings.ToLower(n.Rule), strings.ToLower(p.Search))
	}
	p.Rules = p.Sums.Rules(by, wanted)
	p.Rules = p.Rules[:min(len(p.Rules), maxKeys)]
	if p.By == "rule" {
		by = traffic.Columns["decisions"]
	}
	p.Keys = p.Sums.Keys(by, maxKeys, func(k *traffic.OfKey) bool { return wanted(k.Named) })
	c.show(w, "live", page{Title: "Live", Screen: "live", Refresh: 2, Data: p})
}
