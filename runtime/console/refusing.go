package console

import (
	"net/http"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
)

type refusingPage struct {
	Search   string
	Kind     string // of what is wanted; "" means all
	Refusals list[operate.Refusal]
	More     string // why there may be more
	Seen     operate.Seen
}

// Kinds are the kinds of what refuses.
func (refusingPage) Kinds() []fleet.Kind {
	return []fleet.Kind{fleet.Override, fleet.Block, fleet.Pause}
}

// refusing shows everything that refuses, besides counts. The search is for rules, because it is in the URL.
func (c *console) refusing(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	p := refusingPage{Search: query.Get("q"), Kind: query.Get("kind")}
	found := c.prefix.Refusing(r.Context(), "")
	var wanted []operate.Refusal
	for _, one := range found.All {
		if contains(one.Rule, p.Search) && (p.Kind == "" || p.Kind == string(one.Kind)) {
			wanted = append(wanted, one)
		}
	}
	p.Refusals, p.More, p.Seen = part(wanted, maxKeys, "refusing", query), found.More, found.At
	c.show(r.Context(), w, "refusing", page{Title: "Refusing now", Screen: "refusing", Refresh: 5, Data: p})
}
