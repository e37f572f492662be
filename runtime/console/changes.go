package console

import (
	"net/http"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

type changesPage struct {
	Search  string
	Changes list[change]
	Seen    seen
	Last    change
	Undo    string // identifies the last change; "" if it cannot be undone
}

func (c *console) changes(w http.ResponseWriter, r *http.Request) { c.showChanges(w, r, page{}) }

// showChanges shows who changed what, the newest first. The search is not for keys, because it is in the URL.
func (c *console) showChanges(w http.ResponseWriter, r *http.Request, shown page) {
	query := r.URL.Query()
	p := changesPage{Search: query.Get("q")}
	all, at := c.known.changes.get(r.Context())
	p.Last, p.Undo = lastChange(all)
	var found []change
	for _, one := range all {
		text := strings.ToLower(one.Rule + " " + one.By + " " + one.What + " " + one.Reason)
		if strings.Contains(text, strings.ToLower(p.Search)) {
			found = append(found, change{one})
		}
	}
	p.Changes, p.Seen = part(found, maxKeys, "changes", query), at
	shown.Title, shown.Screen, shown.Data = "Changes", "changes", p
	shown.Back = []hidden{{"page", "changes"}}
	c.show(w, "changes", shown)
}

// change is a change as the page shows it.
type change struct{ fleet.Change }

// AllKeys reports whether the change was about all keys of a rule. An override of one key names it.
func (c change) AllKeys() bool { return c.Kind == fleet.Override && key.Shown(c.Key) == "" }

// lastChange returns the newest change, and a text that tells it from others. The text is "" if the change cannot be undone, because what held
// before is unknown.
func lastChange(all []fleet.Change) (c change, id string) {
	if len(all) == 0 {
		return c, ""
	}
	c = change{all[0]}
	if c.Kind == "" || c.Before == nil && c.After == nil || c.What == "undo" || c.What == "import" {
		return c, ""
	}
	return c, c.At.Format("20060102150405.000") + " " + c.What + " " + c.By
}
