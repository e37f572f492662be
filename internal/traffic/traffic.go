// Package traffic adds up what the processes of a fleet report that they decided lately, under the names that people know.
package traffic

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/rulelist"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Named is a rule under the names that people know, or under its name and tag in keys.
type Named struct {
	Rule   string `json:"rule"`
	Window string `json:"-"`
}

// Arguments are a rule's window and algorithm, as in the list of rules.
type Arguments struct {
	Length    string `json:"window,omitempty"` // "1h", or a cron expression
	Algorithm string `json:"algorithm,omitempty"`
}

// argumentsOf returns the arguments of a rule.
func argumentsOf(r ratelimit.Rule) Arguments {
	row := rulelist.Of(r)
	return Arguments{row.Window, row.Algorithm}
}

// Known is a rule that the store lists.
type Known struct {
	Named
	Arguments
}

// PerWindow puts a rule's window into words, as errors do: "per hour (leaky-bucket)" for "leaky:1h".
func PerWindow(window string) string {
	return strings.TrimPrefix(ratelimit.Violation{Window: window}.String(), "0 ")
}

// Rates are numbers of decisions per second.
type Rates struct {
	Calls   float64 `json:"decisions"`
	Refused float64 `json:"refused"`
	Blocked float64 `json:"blocked"` // part of Refused: the key was blocked
	Shadow  float64 `json:"shadowRefused"`
	Failed  float64 `json:"failed"`
}

func (r *Rates) add(c fleet.Counts, seconds float64) {
	r.Calls += float64(c.Calls) / seconds
	r.Refused += float64(c.Refused) / seconds
	r.Blocked += float64(c.Blocked) / seconds
	r.Shadow += float64(c.Shadow) / seconds
	r.Failed += float64(c.Failed) / seconds
}

// Column is a number by which rows are sorted. The highest comes first.
type Column func(Rates) float64

// Columns are the columns by their names. Rows of equal numbers are sorted by rule, so all are under "rule".
var Columns = map[string]Column{
	"decisions": func(r Rates) float64 { return r.Calls },
	"refused":   func(r Rates) float64 { return r.Refused },
	"blocked":   func(r Rates) float64 { return r.Blocked },
	"shadow":    func(r Rates) float64 { return r.Shadow },
	"failed":    func(r Rates) float64 { return r.Failed },
	"rule":      func(Rates) float64 { return 0 },
}

// OfRule are the rates of one rule.
type OfRule struct {
	Known
	Rates
}

// OfKey are the rates of one key under one rule. Key is as errors show it; "" is everybody.
type OfKey struct {
	Key string `json:"key"`
	OfRule
	Limit int64     `json:"limit,omitempty"` // that the last call brought, as far as a report tells; or 0
	AsOf  time.Time `json:"asOf,omitzero"`   // of that report
}

// Names returns the rules as people know them, by their names in keys. The limiter has the prefix, which is in the form of keys.
func Names(l *ratelimit.Limiter, prefix string, rules []ratelimit.UsedRule) map[Named]Known {
	names := map[Named]Known{}
	for _, r := range rules {
		q := ratelimit.Request{Rule: r.Rule, Key: "x"}
		states, err := l.StateKeys(q)
		inForce, wrong := l.RuleFor(q)
		if err != nil || wrong != nil {
			continue
		}
		for _, state := range states {
			parts, _ := key.Split(state)
			rule, _ := parts.Rule(prefix)
			names[Named{rule, parts.Tag}] = Known{Named{r.Name, inForce.Window()}, argumentsOf(inForce)}
		}
	}
	return names
}

// RuleOf returns the name of the rule that has counts with a name and a tag in keys. The tag may be that of a window that the rule has no more,
// because an override of per began or ended. RuleOf returns "" if no rule has them.
func RuleOf(counts Named, names map[Named]Known) string {
	if known, ok := names[counts]; ok {
		return known.Rule
	}
	rule, longest := "", -1
	for id, known := range names {
		key := strings.TrimPrefix(id.Window, known.Window) // the key template of an unnamed rule, which tells it from others of its method
		if id.Rule != counts.Rule || !strings.HasSuffix(counts.Window, key) {
			continue
		}
		if len(key) > longest || len(key) == longest && known.Rule < rule {
			rule, longest = known.Rule, len(key)
		}
	}
	return rule
}

// Sums are the sums of all reports.
type Sums struct {
	rules map[Named]*OfRule
	keys  map[keyOf]*OfKey
}

// keyOf identifies a key of a rule.
type keyOf struct {
	Named
	subject string
}

// Sum adds up reports. A rule that names lacks keeps its name in keys.
func Sum(reports []fleet.Report, names map[Named]Known) *Sums {
	s := &Sums{map[Named]*OfRule{}, map[keyOf]*OfKey{}}
	for _, report := range reports {
		for _, r := range report.Rules {
			rule := Known{Named: Named{r.Name, r.Tag}}
			rule = cmp.Or(names[rule.Named], rule)
			name := rule.Named
			if s.rules[name] == nil {
				s.rules[name] = &OfRule{Known: rule}
			}
			s.rules[name].add(r.Counts, report.Seconds)
			for _, subject := range r.Subjects {
				id := keyOf{name, subject.Name}
				of := s.keys[id]
				if of == nil {
					of = &OfKey{Key: key.Shown(subject.Name), OfRule: OfRule{Known: rule}}
					s.keys[id] = of
				}
				of.add(subject.Counts, report.Seconds)
				if subject.Limit > 0 && !report.Process.At.Before(of.AsOf) {
					of.Limit, of.AsOf = subject.Limit, report.Process.At
				}
			}
		}
	}
	return s
}

// Of returns the rates of a rule.
func (s *Sums) Of(rule Named) Rates {
	if r := s.rules[rule]; r != nil {
		return r.Rates
	}
	return Rates{}
}

// Known returns a rule with the limit that the last call of a subject brought, as far as a report tells, and since when the report tells that.
// Otherwise it returns the rule as it is.
func (s *Sums) Known(rule ratelimit.Rule, window, subject string) (_ ratelimit.Rule, asOf time.Time) {
	of := s.keys[keyOf{Named{rule.Name, window}, subject}]
	if !rule.Computed || of == nil || of.Limit == 0 {
		return rule, asOf
	}
	rule.Computed, rule.Limit = false, of.Limit
	return rule, of.AsOf
}

// Rules returns the rules that are wanted, sorted by a column.
func (s *Sums) Rules(by Column, wanted func(Named) bool) []OfRule {
	rows := []OfRule{} // not null in JSON
	for name, r := range s.rules {
		if wanted(name) {
			rows = append(rows, *r)
		}
	}
	slices.SortFunc(rows, func(a, b OfRule) int { return compare(a, b, by) })
	return rows
}

// Keys returns the wanted keys with the highest numbers of a column, at most n. It leaves out keys whose number is 0.
func (s *Sums) Keys(by Column, n int, wanted func(*OfKey) bool) []OfKey {
	rows := []OfKey{} // not null in JSON
	for _, k := range s.keys {
		if by(k.Rates) > 0 && wanted(k) {
			rows = append(rows, *k)
		}
	}
	slices.SortFunc(rows, func(a, b OfKey) int { return cmp.Or(compare(a.OfRule, b.OfRule, by), cmp.Compare(a.Key, b.Key)) })
	return rows[:min(len(rows), n)]
}

func compare(a, b OfRule, by Column) int {
	return cmp.Or(cmp.Compare(by(b.Rates), by(a.Rates)), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Window, b.Window))
}
