package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type subjectPage struct {
	Key   string // as searched for; "" before a search
	Shown bool   // the key has the form in which pages show keys
	All   bool   // rules without a key are wanted
	Uses  []use
	More  int // rules that are left out
	Seen  operate.Seen
	Fresh bool // nothing is counted, and nothing set, for this subject

	choices []choice // that the form can change
}

// use is what a subject has used under one rule, as the page shows it.
type use struct {
	operate.Use
	Strip *strip // or nil
}

// Percent is the used part of the limit, 0 to 100.
func (u use) Percent() int64 {
	if u.Limit <= 0 {
		return 0
	}
	return min(100, max(0, 100*u.Used/u.Limit))
}

// Held is what refuses the subject besides its count, and ends last: a block before a pause. It is nil if nothing does.
func (u use) Held() *operate.Refusal {
	var last *operate.Refusal
	for i := range u.Refusals {
		if r := &u.Refusals[i]; last == nil || r.Until.After(last.Until) {
			last = r
		}
	}
	return last
}

// maxRunning bounds how many calls that run are listed under a rule.
const maxRunning = 10

// SomeRunning are the calls that run, those that end last first.
func (u use) SomeRunning() []operate.Running {
	return slices.SortedFunc(slices.Values(u.Running), func(a, b operate.Running) int { return b.Until.Compare(a.Until) })[:min(len(u.Running), maxRunning)]
}

// isKnown reports whether anything is counted, or holds, for the subject alone.
func (u use) isKnown() bool {
	return u.Counted || len(u.Refusals) > 0 || u.Err != nil || slices.ContainsFunc(u.Overrides, func(s *fleet.Setting) bool { return !s.AllKeys })
}

// subject shows one subject under all rules. The form has the field key, or all for the rules without a key.
func (c *console) subject(w http.ResponseWriter, r *http.Request) {
	if parseForm(w, r) {
		c.showSubject(w, r, page{})
	}
}

// keyIn returns the key in a request's form: as people write it, or as pages show it.
func keyIn(r *http.Request) operate.Key {
	return operate.Key{Text: r.PostForm.Get("key"), Shown: r.PostForm.Get("shown") != ""}
}

// parseForm parses the form of a request. It answers the request if it cannot.
func parseForm(w http.ResponseWriter, r *http.Request) bool {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return false
	}
	return true
}

func (c *console) showSubject(w http.ResponseWriter, r *http.Request, shown page) {
	k := keyIn(r)
	p := subjectPage{Key: k.Text, Shown: k.Shown, All: r.PostForm.Get("all") != ""}
	shown.Title, shown.Screen, shown.OfKey = "Subject", "subject", true
	shown.Back = []hidden{{"page", "subject"}}
	for _, name := range []string{"key", "shown", "all"} {
		if value := r.PostForm.Get(name); value != "" {
			shown.Back = append(shown.Back, hidden{name, value})
		}
	}
	if p.Key != "" || p.All {
		p.look(r.Context(), c.prefix, k)
	}
	for _, u := range p.Uses {
		if shown.Chosen == "" && u.IsRefused() {
			shown.Chosen = operate.ID(u.Rule)
		}
	}
	shown.Choices, shown.Chosen, shown.Data = p.choices, cmp.Or(shown.Form.Get("rule"), shown.Chosen), p
	c.show(r.Context(), w, "subject", shown)
}

// look asks for what the subject has used. A rule without a template has counts of keys if requests have keys: those are shown in which something
// is counted.
func (p *subjectPage) look(ctx context.Context, prefix *operate.Prefix, k operate.Key) {
	rules, at := prefix.Rules(ctx)
	if p.Seen = at; at.Never() {
		return
	}
	var asked, unkeyed []ratelimit.UsedRule
	for _, r := range rules {
		switch {
		case r.Key == "":
			unkeyed = append(unkeyed, r)
		case !p.All:
			asked = append(asked, r)
		}
	}
	asked = append(asked, unkeyed...)
	p.More = max(0, len(asked)-maxRows)
	asked = asked[:len(asked)-p.More]
	for _, r := range asked {
		p.choices = append(p.choices, choiceOf(r.Rule))
	}
	uses, err := prefix.Inspect(ctx, k, asked...)
	if err != nil {
		p.Seen = operate.Seen{Err: err}
		return
	}
	p.Seen, p.Fresh = operate.Seen{At: time.Now()}, true
	strips := 0
	for _, one := range uses {
		u := use{Use: one}
		if !p.All && u.UsedRule.Key == "" && !u.isKnown() {
			continue
		}
		if strips < maxStrips {
			if u.Strip = drawStrip(slices.Concat(u.Taken, u.Waiting), prefix.Now(), u.InForce.Per); u.Strip != nil {
				strips++
			}
		}
		p.Fresh = p.Fresh && !u.isKnown()
		p.Uses = append(p.Uses, u)
	}
}
