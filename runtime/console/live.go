package console

import (
	"context"
	"net/http"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
)

// recent is what the processes decided in the last seconds.
type recent struct {
	*traffic.Sums
	Seen     operate.Seen
	Counting int  // processes that count decisions
	Reported int  // those of them whose reports are in the sums
	Counts   bool // processes count, or have counted within ten minutes
	Unknown  bool // nobody knows whether they count
	Local    bool // the store is in this process, and counts nothing
}

func (c *console) recent(ctx context.Context) (r recent) {
	r.Sums, r.Seen = c.prefix.Traffic(ctx)
	r.Counting, r.Reported = c.prefix.Publishers(ctx)
	slots, at := c.prefix.History(ctx)
	_, processes := c.prefix.Processes(ctx)
	r.Unknown, r.Local = at.Worse(processes).Never(), c.prefix.IsLocal()
	r.Counts = r.Counting > 0 || slices.ContainsFunc(slots, func(s fleet.Slot) bool { return len(s.Rules) > 0 })
	return r
}

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
	by, wanted := traffic.Columns[p.By], func(n traffic.Named) bool { return contains(n.Rule, p.Search) }
	p.Rules = p.Sums.Rules(by, wanted)
	p.Rules = p.Rules[:min(len(p.Rules), maxKeys)]
	if p.By == "rule" {
		by = traffic.Columns["decisions"]
	}
	p.Keys = p.Sums.Keys(by, maxKeys, func(k *traffic.OfKey) bool { return wanted(k.Named) })
	c.show(r.Context(), w, "live", page{Title: "Live", Screen: "live", Refresh: 2, Data: p})
}
