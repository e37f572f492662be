package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

const (
	shownRules    = 15
	shownSubjects = 10
)

// frame is one screen of top.
type frame struct {
	Prefix    string    `json:"prefix"`
	Processes int       `json:"processes"`
	Rules     []rate    `json:"rules"`
	Hottest   []subject `json:"hottest"`
	Refused   []subject `json:"mostRefused"`
	Shadow    []subject `json:"mostShadowRefused"`
}

// rate is a number of decisions per second.
type rate struct {
	Rule    string  `json:"rule"`
	Window  string  `json:"window"`
	Calls   float64 `json:"decisions"`
	Refused float64 `json:"refused"`
	Shadow  float64 `json:"shadowRefused"`
}

type subject struct {
	Key string `json:"key"`
	rate
}

func (r *rate) add(c fleet.Counts, seconds float64) {
	r.Calls += float64(c.Calls) / seconds
	r.Refused += float64(c.Refused) / seconds
	r.Shadow += float64(c.Shadow) / seconds
}

// newFrame adds up the reports. names has the names under which rules are shown.
func newFrame(prefix string, reports []fleet.Report, names map[named]named) *frame {
	f := &frame{Prefix: prefix, Processes: len(reports), Rules: []rate{}}
	rules := map[named]*rate{}
	type of struct {
		rule    named
		subject string
	}
	subjects := map[of]*subject{}
	for _, report := range reports {
		for _, r := range report.Rules {
			name := named{r.Name, r.Tag}
			if known, ok := names[name]; ok {
				name = known
			}
			if rules[name] == nil {
				rules[name] = &rate{Rule: name.Rule, Window: name.Window}
			}
			rules[name].add(r.Counts, report.Seconds)
			for _, s := range r.Subjects {
				id := of{name, s.Name}
				if subjects[id] == nil {
					subjects[id] = &subject{Key: key.Shown(s.Name), rate: rate{Rule: name.Rule, Window: name.Window}}
				}
				subjects[id].add(s.Counts, report.Seconds)
			}
		}
	}
	for _, r := range rules {
		f.Rules = append(f.Rules, *r)
	}
	slices.SortFunc(f.Rules, func(a, b rate) int { return compare(a, b, rate.calls) })
	var all []subject
	for _, s := range subjects {
		all = append(all, *s)
	}
	f.Hottest, f.Refused, f.Shadow = most(all, rate.calls), most(all, rate.refused), most(all, rate.shadow)
	return f
}

func (r rate) calls() float64   { return r.Calls }
func (r rate) refused() float64 { return r.Refused }
func (r rate) shadow() float64  { return r.Shadow }

// compare orders rates: the higher number first, and equal numbers by rule.
func compare(a, b rate, number func(rate) float64) int {
	return cmp.Or(cmp.Compare(number(b), number(a)), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Window, b.Window))
}

// most returns the subjects with the highest numbers. It leaves out subjects whose number is 0.
func most(all []subject, number func(rate) float64) []subject {
	some := slices.DeleteFunc(slices.Clone(all), func(s subject) bool { return number(s.rate) == 0 })
	slices.SortFunc(some, func(a, b subject) int { return cmp.Or(compare(a.rate, b.rate, number), cmp.Compare(a.Key, b.Key)) })
	return some[:min(len(some), shownSubjects)]
}

// text returns the frame as text.
func (f *frame) text(now time.Time) string {
	var b bytes.Buffer
	plural := "es"
	if f.Processes == 1 {
		plural = ""
	}
	fmt.Fprintf(&b, "%s  prefix %s  %d process%s\n", now.Format(time.TimeOnly), shown(f.Prefix), f.Processes, plural)
	if f.Processes == 0 {
		fmt.Fprintln(&b, "\nNo process publishes statistics. Those with redisstore.WithStats() do, some seconds after their first decision, if their user may run "+
			strings.Join(statistics, ", ")+".")
		return b.String()
	}
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	line := func(cells ...string) { writeCells(w, cells) }
	fmt.Fprintln(&b)
	line("RULE", "WINDOW", "DECISIONS/S", "REFUSED/S", "WOULD REFUSE/S")
	for _, r := range f.Rules[:min(len(f.Rules), shownRules)] {
		line(append([]string{r.Rule, perWindow(r.Window)}, r.cells()...)...)
	}
	if more := len(f.Rules) - shownRules; more > 0 {
		line(fmt.Sprintf("and %d more rules", more))
	}
	for _, list := range []struct {
		title    string
		subjects []subject
	}{{"HOTTEST", f.Hottest}, {"MOST REFUSED", f.Refused}, {"SHADOW RULES WOULD REFUSE", f.Shadow}} {
		if len(list.subjects) == 0 {
			continue
		}
		_ = w.Flush() // never fails: it writes to memory
		fmt.Fprintln(&b)
		line(list.title, "RULE", "WINDOW", "DECISIONS/S", "REFUSED/S", "WOULD REFUSE/S")
		for _, s := range list.subjects {
			line(append([]string{cmp.Or(s.Key, "everybody"), s.Rule, perWindow(s.Window)}, s.cells()...)...)
		}
	}
	_ = w.Flush()
	return b.String()
}

func (r rate) cells() []string {
	return []string{perSecond(r.Calls), perSecond(r.Refused), perSecond(r.Shadow)}
}

func perSecond(n float64) string { return fmt.Sprintf("%.1f", n) }
