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
	if len(all) > 0 && kindOf(all[0]) != "" {
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
func (c change) AllKeys() bool { return kindOf(c.Change) == fleet.Override && key.Shown(c.Key) == "" }

// Was is what held before the change, and Is what holds since; nil if nothing does.
func (c change) Was() *fleet.Setting { return c.ofKind(c.Before) }
func (c change) Is() *fleet.Setting  { return c.ofKind(c.After) }

// ofKind returns a setting with its kind, which the list of changes does not have.
func (c change) ofKind(s *fleet.Setting) *fleet.Setting {
	if s == nil {
		return nil
	}
	return &fleet.Setting{Kind: kindOf(c.Change), Values: s.Values}
}

// identity tells one change from others.
func identity(c fleet.Change) string {
	return c.At.Format("20060102150405.000") + " " + c.What + " " + c.By
}

// kindOf returns the kind of the one setting that a change was about, or "" if it cannot be undone.
func kindOf(c fleet.Change) fleet.Kind {
	switch {
	case c.Keys > 1 || c.Before == nil && c.After == nil:
		return ""
	case c.What == "block" || c.What == "unblock":
		return fleet.Block
	case c.What == "pause" || c.What == "resume":
		return fleet.Pause
	case c.What == "set" || c.What == "clear":
		return fleet.Override
	}
	return ""
}
