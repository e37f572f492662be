package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// named is a rule under the names that people know.
type named struct{ Rule, Window string }

// rates are decisions per second.
type rates struct{ Calls, Refused, Shadow float64 }

func (r *rates) add(n fleet.Counts, seconds float64) {
	r.Calls += float64(n.Calls) / seconds
	r.Refused += float64(n.Refused) / seconds
	r.Shadow += float64(n.Shadow) / seconds
}

// by returns the rate of a name, by which tables are sorted.
func (r rates) by(name string) float64 {
	switch name {
	case "refused":
		return r.Refused
	case "shadow":
		return r.Shadow
	default:
		return r.Calls
	}
}

// ofRule are the rates of one rule, ofKey those of one key of it.
type (
	ofRule struct {
		named
		rates
	}
	ofKey struct {
		named
		Key string // in the form of keys
		rates
	}
)

// traffic is what the processes report that they decided lately.
type traffic struct {
	Reports int // how many processes report
	rules   map[named]*ofRule
	keys    map[named]map[string]*ofKey
}

// names returns the names under which rules are shown, by their names and tags in keys.
func (c *console) names(rules []ratelimit.UsedRule) map[named]named {
	names := map[named]named{}
	for _, r := range rules {
		state, err := c.view.StateKey(ratelimit.Request{Rule: r.Rule, Key: "x"})
		if err != nil {
			continue
		}
		parts, _ := key.Split(state)
		names[named{strings.TrimPrefix(parts.Owner, c.prefix+":"), parts.Tag}] = named{r.Name, strings.TrimSuffix(parts.Tag, ":"+r.Key)}
	}
	return names
}

// sum adds up the reports of all processes.
func sum(reports []fleet.Report, names map[named]named) *traffic {
	t := &traffic{len(reports), map[named]*ofRule{}, map[named]map[string]*ofKey{}}
	for _, report := range reports {
		for _, r := range report.Rules {
			id := named{r.Name, r.Tag}
			id = cmp.Or(names[id], id)
			if t.rules[id] == nil {
				t.rules[id], t.keys[id] = &ofRule{named: id}, map[string]*ofKey{}
			}
			t.rules[id].add(r.Counts, report.Seconds)
			for _, s := range r.Subjects {
				if t.keys[id][s.Name] == nil {
					t.keys[id][s.Name] = &ofKey{named: id, Key: s.Name}
				}
				t.keys[id][s.Name].add(s.Counts, report.Seconds)
			}
		}
	}
	return t
}

// of returns the rates of a rule.
func (t *traffic) of(id named) rates {
	if r := t.rules[id]; r != nil {
		return r.rates
	}
	return rates{}
}

// topRules returns the rules with the highest rates. wanted selects rules.
func (t *traffic) topRules(by string, wanted func(named) bool) (top []ofRule) {
	for id, r := range t.rules {
		if wanted(id) {
			top = append(top, *r)
		}
	}
	slices.SortFunc(top, func(a, b ofRule) int {
		return cmp.Or(cmp.Compare(b.by(by), a.by(by)), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Window, b.Window))
	})
	return top
}

// topKeys returns the keys with the highest rates, at most n. It leaves out keys whose rate is 0.
func (t *traffic) topKeys(by string, n int, wanted func(named, string) bool) (top []ofKey) {
	for id, keys := range t.keys {
		for _, k := range keys {
			if k.by(by) > 0 && wanted(id, key.Shown(k.Key)) {
				top = append(top, *k)
			}
		}
	}
	slices.SortFunc(top, func(a, b ofKey) int {
		return cmp.Or(cmp.Compare(b.by(by), a.by(by)), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Key, b.Key))
	})
	return top[:min(len(top), n)]
}

// chart is a line over the last ten minutes, 120 wide and 32 high.
type chart struct {
	Title  string
	Line   string // points of a polyline
	Area   string // points of the polygon below it
	Now    float64
	Peak   float64
	Warns  bool // high is bad
	Enough bool // there is something to draw
}

// drawn draws the rates of a counter, which pick takes from the counts of a slot.
func drawn(title string, slots []fleet.Slot, pick func(fleet.Counts) int64, wanted func(fleet.RuleCounts) bool) chart {
	c := chart{Title: title, Enough: len(slots) > 1}
	seconds := fleet.SlotLength.Seconds()
	values := make([]float64, len(slots))
	for i, s := range slots {
		for _, r := range s.Rules {
			if wanted(r) {
				values[i] += float64(pick(r.Counts)) / seconds
			}
		}
		c.Peak = max(c.Peak, values[i])
	}
	if !c.Enough {
		return c
	}
	values = values[:len(values)-1] // the last slot is not over
	c.Now = values[len(values)-1]
	var points strings.Builder
	for i, v := range values {
		fmt.Fprintf(&points, "%.1f,%.1f ", float64(i)*120/float64(max(1, len(values)-1)), 31-30*v/max(c.Peak, 1e-9))
	}
	c.Line = strings.TrimSpace(points.String())
	c.Area = "0,32 " + c.Line + " 120,32"
	return c
}

func calls(n fleet.Counts) int64   { return n.Calls }
func refused(n fleet.Counts) int64 { return n.Refused }
func shadow(n fleet.Counts) int64  { return n.Shadow }
