package console

import (
	"net/http"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
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
	rules, _ := c.prefix.Rules(r.Context())
	var wanted []operate.Refusal
	for _, one := range found.All {
		if isOf(one.Rule, p.Search, rules) && (p.Kind == "" || p.Kind == string(one.Kind)) {
			wanted = append(wanted, one)
		}
	}
	p.Refusals, p.More, p.Seen = part(wanted, maxKeys, "refusing", query), found.More, found.At
	c.show(r.Context(), w, "refusing", page{Title: "Refusing now", Screen: "refusing", Refresh: 5, Data: p})
}

// isOf reports whether a rule has the text that people search for, or is a glob of one that has it.
func isOf(rule, search string, rules []ratelimit.UsedRule) bool {
	return contains(rule, search) || fleet.IsGlob(rule) && slices.ContainsFunc(rules, func(u ratelimit.UsedRule) bool {
		return contains(u.Name, search) && fleet.Covers(rule, fleet.SettingName(u.Name))
	})
}
