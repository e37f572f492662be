package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

const (
	shownRules    = 15
	shownSubjects = 10
	silentAfter   = 7 * time.Second // a process says something every five
)

// frameOf is what a frame is made of.
type frameOf struct {
	prefix       string
	processes    []fleet.Process
	reports      []fleet.Report
	names        map[named]named // under which rules are shown
	filter, sort string
	now          time.Time // by the store's clock
	at           time.Time // by this machine's
}

// frame is one screen of top.
type frame struct {
	At         time.Time `json:"at"`
	Prefix     string    `json:"prefix"`
	Stale      string    `json:"stale,omitempty"` // why a newer frame cannot be read
	Processes  int       `json:"processes"`
	Publishing int       `json:"publishing"`       // processes with statistics
	Silent     []string  `json:"silent,omitempty"` // processes that may have died
	Rules      []rate    `json:"rules"`
	Hottest    []subject `json:"hottest"`
	Refused    []subject `json:"mostRefused"`
	Shadow     []subject `json:"mostShadowRefused"`
	Failed     []subject `json:"mostFailed"`

	old time.Duration // since At, if it is stale
}

// rate is a number of decisions per second.
type rate struct {
	Rule    string  `json:"rule"`
	Window  string  `json:"window"`
	Calls   float64 `json:"decisions"`
	Refused float64 `json:"refused"`
	Shadow  float64 `json:"shadowRefused"`
	Failed  float64 `json:"failed"`
}

type subject struct {
	Key string `json:"key"`
	rate
}

func (r *rate) add(c fleet.Counts, seconds float64) {
	r.Calls += float64(c.Calls) / seconds
	r.Refused += float64(c.Refused) / seconds
	r.Shadow += float64(c.Shadow) / seconds
	r.Failed += float64(c.Failed) / seconds
}

// columnsOf are the numbers by which rows can be sorted. The highest comes first.
var columnsOf = map[string]func(*rate) float64{
	"decisions": func(r *rate) float64 { return r.Calls },
	"refused":   func(r *rate) float64 { return r.Refused },
	"shadow":    func(r *rate) float64 { return r.Shadow },
	"failed":    func(r *rate) float64 { return r.Failed },
	"rule":      func(*rate) float64 { return 0 },
}

// subjectOf identifies a subject of a rule.
type subjectOf struct {
	named
	subject string
}

// newFrame adds up the reports.
func newFrame(of frameOf) *frame {
	f := &frame{At: of.at, Prefix: of.prefix, Processes: len(of.processes), Rules: []rate{}}
	for i := range of.processes {
		p := &of.processes[i]
		if p.Stats {
			f.Publishing++
		}
		if silent := of.now.Sub(p.At); silent > silentAfter {
			f.Silent = append(f.Silent, fmt.Sprintf("%s, silent for %.0fs", processInWords(p), silent.Seconds()))
		}
	}
	rules, subjects := map[named]*rate{}, map[subjectOf]*subject{}
	for i := range of.reports {
		of.add(&of.reports[i], rules, subjects)
	}
	by := columnsOf[of.sort]
	for _, r := range rules {
		f.Rules = append(f.Rules, *r)
	}
	slices.SortFunc(f.Rules, func(a, b rate) int { return compare(&a, &b, by) })
	all := slices.Collect(maps.Values(subjects))
	f.Hottest, f.Refused = most(all, columnsOf["decisions"]), most(all, columnsOf["refused"])
	f.Shadow, f.Failed = most(all, columnsOf["shadow"]), most(all, columnsOf["failed"])
	return f
}

// add adds a report to the sums of rules and subjects.
func (of *frameOf) add(report *fleet.Report, rules map[named]*rate, subjects map[subjectOf]*subject) {
	for _, r := range report.Rules {
		name := named{r.Name, r.Tag}
		if known, ok := of.names[name]; ok {
			name = known
		}
		whole := strings.Contains(name.Rule, of.filter)
		for _, s := range r.Subjects {
			shown := key.Shown(s.Name)
			if !whole && !strings.Contains(shown, of.filter) {
				continue
			}
			id := subjectOf{name, s.Name}
			if subjects[id] == nil {
				subjects[id] = &subject{Key: shown, rate: rate{Rule: name.Rule, Window: name.Window}}
			}
			subjects[id].add(s.Counts, report.Seconds)
		}
		if !whole {
			continue
		}
		if rules[name] == nil {
			rules[name] = &rate{Rule: name.Rule, Window: name.Window}
		}
		rules[name].add(r.Counts, report.Seconds)
	}
}

// compare orders rates: the higher number first, and equal numbers by rule.
func compare(a, b *rate, number func(*rate) float64) int {
	return cmp.Or(cmp.Compare(number(b), number(a)), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Window, b.Window))
}

// most returns the subjects with the highest numbers. It leaves out subjects whose number is 0.
func most(all []*subject, number func(*rate) float64) (some []subject) {
	for _, s := range all {
		if number(&s.rate) > 0 {
			some = append(some, *s)
		}
	}
	slices.SortFunc(some, func(a, b subject) int { return cmp.Or(compare(&a.rate, &b.rate, number), cmp.Compare(a.Key, b.Key)) })
	return some[:min(len(some), shownSubjects)]
}

// staleBy returns the frame, or an empty one for nil, with the reason why there is no newer one.
func (f *frame) staleBy(err error, now time.Time) *frame {
	if f == nil {
		return &frame{At: now, Stale: err.Error()}
	}
	stale := *f
	stale.Stale, stale.old = err.Error(), now.Sub(f.At)
	return &stale
}

// text returns the frame as text. Unless most is 0, its lines are cut to that width.
func (f *frame) text(most int) string {
	head := fmt.Sprintf("%s  prefix %s  %s", f.At.Format("15:04:05 MST"), f.Prefix, counted(int64(f.Processes), "process"))
	lines := [][]string{{head}}
	if f.Stale != "" {
		lines = append(lines, []string{fmt.Sprintf("STALE for %.0fs: %s", f.old.Seconds(), f.Stale)})
	}
	for _, p := range f.Silent {
		lines = append(lines, []string{"perhaps dead: " + p})
	}
	text := columns(lines, most)
	if len(f.Rules)+len(f.Hottest) == 0 {
		return text + "\n" + columns([][]string{{f.nothing()}}, most)
	}
	lines = [][]string{{"RULE", "WINDOW", "DECISIONS/S", "REFUSED/S", "FAILED/S", "WOULD REFUSE/S"}}
	for _, r := range f.Rules[:min(len(f.Rules), shownRules)] {
		lines = append(lines, append([]string{r.Rule, perWindow(r.Window)}, r.cells()...))
	}
	if more := len(f.Rules) - shownRules; more > 0 {
		lines = append(lines, []string{fmt.Sprintf("and %d more rules", more)})
	}
	if len(f.Rules) > 0 {
		text += "\n" + columns(lines, most)
	}
	for _, list := range []struct {
		title    string
		subjects []subject
	}{{"HOTTEST", f.Hottest}, {"MOST REFUSED", f.Refused}, {"FAILED", f.Failed}, {"SHADOW RULES WOULD REFUSE", f.Shadow}} {
		if len(list.subjects) == 0 {
			continue
		}
		lines = [][]string{{list.title, "RULE", "WINDOW", "DECISIONS/S", "REFUSED/S", "FAILED/S", "WOULD REFUSE/S"}}
		for _, s := range list.subjects {
			lines = append(lines, append([]string{cmp.Or(s.Key, "everybody"), s.Rule, perWindow(s.Window)}, s.cells()...))
		}
		text += "\n" + columns(lines, most)
	}
	return text
}

// nothing says why there are no decisions to show.
func (f *frame) nothing() string {
	switch {
	case f.Stale != "":
		return "nothing was read yet"
	case f.Processes == 0:
		return "no process of this prefix runs"
	case f.Publishing == 0:
		return "no process publishes statistics: make their stores with redisstore.WithStats(), and permit " + strings.Join(statistics, ", ")
	}
	return fmt.Sprintf("%s with statistics, but no decisions in the last five seconds", counted(int64(f.Publishing), "process"))
}

func (r rate) cells() []string {
	return []string{perSecond(r.Calls), perSecond(r.Refused), perSecond(r.Failed), perSecond(r.Shadow)}
}

func perSecond(n float64) string { return fmt.Sprintf("%.1f", n) }
