package console

import (
	"net/http"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
)

type changesPage struct {
	Search  string
	Changes list[change]
	Seen    operate.Seen
	Last    change
	Undo    string // identifies the last change; "" if it cannot be undone
}

// change is a change as the page shows it.
type change struct{ fleet.Change }

// AllKeys reports whether the change was about all keys of a rule. An override of one key names it.
func (c change) AllKeys() bool { return c.Kind == fleet.Override && c.Key == "" }

func (c *console) changes(w http.ResponseWriter, r *http.Request) { c.showChanges(w, r, page{}) }

// showChanges shows who changed what, the newest first. The search is not for keys, because it is in the URL.
func (c *console) showChanges(w http.ResponseWriter, r *http.Request, shown page) {
	query := r.URL.Query()
	p := changesPage{Search: query.Get("q")}
	all, at := c.prefix.Changes(r.Context(), "")
	if p.Undo = operate.Undoable(all); p.Undo != "" {
		p.Last = change{all[0]}
	}
	var found []change
	for _, one := range all {
		if contains(one.Rule+" "+one.By+" "+one.What+" "+one.Reason, p.Search) {
			found = append(found, change{one})
		}
	}
	p.Changes, p.Seen = part(found, maxKeys, "changes", query), at
	shown.Title, shown.Screen, shown.Data = "Changes", "changes", p
	shown.Back = []hidden{{"page", "changes"}}
	c.show(r.Context(), w, "changes", shown)
}

// contains reports whether a text has what people search for.
func contains(text, search string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(search))
}
