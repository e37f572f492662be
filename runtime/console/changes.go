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
	Undo    string // identifies the last change if it can be undone
	Last    change
}

func (c *console) changes(w http.ResponseWriter, r *http.Request) { c.showChanges(w, r, page{}) }

// showChanges shows who changed what, the newest first. The search is not for keys, because it is in the URL.
func (c *console) showChanges(w http.ResponseWriter, r *http.Request, shown page) {
	query := r.URL.Query()
	p := changesPage{Search: query.Get("q")}
	all, at := c.known.changes.get(r.Context())
	if len(all) > 0 && (change{all[0]}).canUndo() {
		p.Undo, p.Last = identity(all[0]), change{all[0]}
	}
	var found []change
	for _, one := range all {
		text := strings.ToLower(one.Rule + " " + one.By + " " + one.What + " " + one.Reason)
		if strings.Contains(text, strings.ToLower(p.Search)) {
			found = append(found, change{one})
		}
	}
	p.Changes, p.Seen = part(found, maxKeys, "changes", query), at
	shown.Title, shown.Screen, shown.Data = "Changes", "changes", p
	c.show(w, "changes", shown)
}

// change is a change as the page shows it.
type change struct{ fleet.Change }

// AllKeys reports whether the change was about all keys of a rule. An override of one key names it.
func (c change) AllKeys() bool { return c.Kind == fleet.Override && key.Shown(c.Key) == "" }

// canUndo reports whether what held before the change is known.
func (c change) canUndo() bool {
	return c.Kind != "" && (c.Before != nil || c.After != nil) && c.What != "undo" && c.What != "import"
}

// identity tells one change from others.
func identity(c fleet.Change) string {
	return c.At.Format("20060102150405.000") + " " + c.What + " " + c.By
}
