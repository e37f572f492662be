package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
)

const (
	shownRules    = 15
	shownSubjects = 10
)

// frameOf is what a frame is made of.
type frameOf struct {
	prefix       string
	processes    []fleet.Process
	sums         *traffic.Sums
	filter, sort string
	now          time.Time // by the store's clock
}

// frame is one screen of top.
type frame struct {
	At         time.Time        `json:"at"` // by the store's clock
	Prefix     string           `json:"prefix"`
	Stale      string           `json:"stale,omitempty"` // why a newer frame cannot be read
	Processes  int              `json:"processes"`
	Publishing int              `json:"publishing"`       // processes with statistics
	Silent     []string         `json:"silent,omitempty"` // processes that may have died
	Rules      []traffic.OfRule `json:"rules"`
	Hottest    []traffic.OfKey  `json:"hottest"`
	Refused    []traffic.OfKey  `json:"mostRefused"`
	Shadow     []traffic.OfKey  `json:"mostShadowRefused"`
	Failed     []traffic.OfKey  `json:"mostFailed"`

	old    time.Duration // since At, if it is stale
	filter string        // what rules and keys that are shown contain
}

// newFrame adds up the reports.
func newFrame(of frameOf) *frame {
	f := &frame{At: of.now.UTC(), Prefix: of.prefix, Processes: len(of.processes), filter: of.filter}
	for i := range of.processes {
		p := &of.processes[i]
		if p.Stats {
			f.Publishing++
		}
		if silent := of.now.Sub(p.At); silent > operate.SilentAfter {
			f.Silent = append(f.Silent, fmt.Sprintf("%s, silent for %.0fs; its rates are from before", p.String(), silent.Seconds()))
		}
	}
	f.Rules = of.sums.Rules(traffic.Columns[of.sort], func(n traffic.Named) bool { return strings.Contains(n.Rule, of.filter) })
	most := func(column string) []traffic.OfKey {
		return of.sums.Keys(traffic.Columns[column], shownSubjects, func(k *traffic.OfKey) bool {
			return strings.Contains(k.Rule, of.filter) || strings.Contains(k.Key, of.filter)
		})
	}
	f.Hottest, f.Refused, f.Shadow, f.Failed = most("decisions"), most("refused"), most("shadow"), most("failed")
	return f
}

// staleBy returns the frame, or an empty one for nil, with the reason why there is no newer one.
func (f *frame) staleBy(err error, now time.Time) *frame {
	if f == nil {
		return &frame{At: now.UTC(), Stale: err.Error()}
	}
	stale := *f
	stale.Stale, stale.old = err.Error(), now.Sub(f.At)
	return &stale
}

// text returns the frame as text. Unless most is 0, its lines are cut to that width.
func (f *frame) text(most int) string {
	head := fmt.Sprintf("%s  prefix %s  %s", f.At.Local().Format("15:04:05 MST"), f.Prefix, operate.Count(f.Processes, "process"))
	lines := [][]string{{head}}
	if f.Stale != "" {
		lines = append(lines, []string{fmt.Sprintf("STALE for %.0fs: %s", f.old.Seconds(), f.Stale)})
	}
	for _, p := range f.Silent {
		lines = append(lines, []string{"perhaps dead or cut off: " + p})
	}
	text := columns(lines, most)
	if len(f.Rules)+len(f.Hottest) == 0 {
		return text + "\n" + columns([][]string{{f.nothing()}}, most)
	}
	lines = [][]string{{"RULE", "WINDOW", "DECISIONS/S", "REFUSED/S", "BLOCKED/S", "FAILED/S", "WOULD REFUSE/S"}}
	for _, r := range f.Rules[:min(len(f.Rules), shownRules)] {
		lines = append(lines, append([]string{r.Rule, traffic.PerWindow(r.Window)}, cells(r.Rates)...))
	}
	if more := len(f.Rules) - shownRules; more > 0 {
		lines = append(lines, []string{fmt.Sprintf("and %d more rules", more)})
	}
	if len(f.Rules) > 0 {
		text += "\n" + columns(lines, most)
	}
	for _, list := range []struct {
		title string
		keys  []traffic.OfKey
	}{{"HOTTEST", f.Hottest}, {"MOST REFUSED", f.Refused}, {"FAILED", f.Failed}, {"SHADOW RULES WOULD REFUSE", f.Shadow}} {
		if len(list.keys) == 0 {
			continue
		}
		lines = [][]string{{list.title, "RULE", "WINDOW", "DECISIONS/S", "REFUSED/S", "BLOCKED/S", "FAILED/S", "WOULD REFUSE/S"}}
		for _, s := range list.keys {
			lines = append(lines, append([]string{cmp.Or(s.Key, "everybody"), s.Rule, traffic.PerWindow(s.Window)}, cells(s.Rates)...))
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
		return nobodyReports
	case f.Publishing == 0:
		return "no process publishes statistics: make their stores with redisstore.WithStats(), and permit " + strings.Join(statistics, ", ")
	}
	text := operate.Count(f.Publishing, "process") + " with statistics, but no decisions in the last five seconds"
	if f.filter != "" {
		text += fmt.Sprintf(" of a rule or key with %q", f.filter)
	}
	return text
}

func cells(r traffic.Rates) []string {
	return []string{perSecond(r.Calls), perSecond(r.Refused), perSecond(r.Blocked), perSecond(r.Failed), perSecond(r.Shadow)}
}

func perSecond(n float64) string { return fmt.Sprintf("%.1f", n) }
