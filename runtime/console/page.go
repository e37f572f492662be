package console

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

//go:embed page
var pages embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"ago": operate.Ago, "bytes": operate.Bytes, "count": operate.Count[int], "count64": operate.Count[int64], "cut": cut, "full": fullTime, "glob": fleet.IsGlob,
	"label": labelled, "limits": operate.Limits, "modes": modes, "number": operate.Number, "rate": perSecond, "share": share, "shown": key.Shown, "sides": sidesOf,
	"span": operate.Span, "what": what, "whose": operate.Whose, "window": traffic.PerWindow,
}).ParseFS(pages, "page/*.html"))

// page is what every page has.
type page struct {
	Title   string
	Screen  string // the path of the screen in the navigation
	Refresh int    // seconds after which a page without script loads itself again; 0 means never
	Writes  bool
	Local   bool      // the store is in this process
	Now     time.Time // by the store's clock
	Prefix  string
	Lost    string // that the store has lost settings, and what to do; or ""
	Data    any

	// What a form of this page has just asked for.

	Form   url.Values
	Done   *done  // what it changed; or nil
	Failed string // why it changed nothing; or ""
	Wrong  string // the field that is wrong; or ""
	Unsure bool   // perhaps it changed something all the same

	// The form of this page.

	Back    []hidden // fields that lead back to this page
	OfKey   bool     // it changes one key of a rule
	Choices []choice // the rules that it can change
	Chosen  string   // the one that it begins with
}

// done is what a form has changed.
type done struct {
	Text    string // "Blocked for 2h, everywhere within 2 s."
	Rule    string
	Key     string // as the page shows it
	Match   bool   // Key stands for all keys that it matches
	AllKeys bool
	Undo    string // identifies the change; "" if it cannot be undone
}

// choice is a rule, or a glob of rules, that a form can change.
type choice struct{ ID, Text string }

// hidden is a field of a form that nobody sees.
type hidden struct{ Name, Value string }

// field is a field of a form with what was typed, if that could not be done, and what is wrong with it.
type field struct{ Value, Fault string }

// Field returns a field of the form.
func (p page) Field(name string) (f field) {
	if p.Failed != "" {
		f.Value = p.Form.Get(name)
	}
	if p.Wrong == name {
		f.Fault = p.Failed
	}
	return f
}

// modes are what people choose from. A rule becomes one of trigger mode only by what it declares.
func modes() []ratelimit.Mode { return []ratelimit.Mode{ratelimit.ModeEnforce, ratelimit.ModeShadow} }

// show writes a page.
func (c *console) show(ctx context.Context, w http.ResponseWriter, name string, p page) {
	p.Now, p.Prefix, p.Writes, p.Local = c.prefix.Now(), c.prefix.Name(), c.actor != nil, c.prefix.IsLocal()
	loss, _ := c.prefix.Loss(ctx)
	p.Lost = loss.InWords()
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, p); err != nil {
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes())
}

// maxRows bounds the rows of a table. Rows with keys are longer: see maxKeys.
const (
	maxRows = 100
	maxKeys = 25
)

// list is a part of a long table.
type list[T any] struct {
	Rows         []T
	First, Last  int    // the numbers of the first and the last row
	Total        int    // of the whole table
	Before, Next string // links to the parts around it, or ""
}

// part returns the part of a table that begins at the row of the query's parameter "from". Links to other parts go to a path:
// "rules?from=100&q=sms".
func part[T any](all []T, size int, path string, query url.Values) list[T] {
	from, _ := strconv.Atoi(query.Get("from"))
	from = max(0, min(from, len(all)-1)) / size * size
	to := min(len(all), from+size)
	link := func(from int) string {
		query := maps.Clone(query)
		query.Set("from", strconv.Itoa(from))
		return path + "?" + query.Encode()
	}
	l := list[T]{Rows: all[from:to], First: from + 1, Last: to, Total: len(all)}
	if from > 0 {
		l.Before = link(from - size)
	}
	if to < len(all) {
		l.Next = link(to)
	}
	return l
}

// perSecond rounds a rate: below 10 to tenths, and otherwise to whole numbers.
func perSecond(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n < 0.05:
		return "<0.1"
	case n < 9.95:
		return fmt.Sprintf("%.1f", n)
	default:
		return operate.Number(int64(math.Round(n)))
	}
}

// share is a part of a whole, in percent.
func share(part, whole float64) string {
	switch {
	case whole == 0:
		return "–"
	case part == 0:
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

// cut shortens a long key for a table. It leaves the end, in which keys often differ.
func cut(text string) string {
	const head, tail = 28, 19
	runes := []rune(text)
	if len(runes) <= head+1+tail {
		return text
	}
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}

func fullTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// what says what a setting does: "limit=500 mode=shadow". A template shows its end apart.
func what(s *fleet.Setting) string { return operate.Values(s.Kind, &s.Values) }

// side is one side of a change: what holds before or after it, and until when.
type side struct {
	What  string
	Until time.Time
}

// sidesOf returns what held before and after a change of one setting. It returns nil for other changes.
func sidesOf(c fleet.Change) []side {
	if c.Before == nil && c.After == nil {
		return nil
	}
	of := func(s *fleet.Setting) side {
		if s == nil || s.Cleared {
			return side{What: operate.Values(c.Kind, nil)}
		}
		return side{operate.Values(c.Kind, &s.Values), s.Until}
	}
	return []side{of(c.Before), of(c.After)}
}

// choiceOf returns a rule as a form names it: with its window and, if it has one, its key.
func choiceOf(r ratelimit.Rule) choice {
	name := r.Name + " · " + traffic.PerWindow(r.Window())
	if r.Key != "" {
		name += " · " + r.Key
	}
	return choice{operate.ID(r), name}
}

// labelled is a value with an identity, for templates that take two.
func labelled(id string, value any) map[string]any { return map[string]any{"ID": id, "Value": value} }
