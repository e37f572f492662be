package simulate

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Comparison says which calls of a load two lists of rules decide differently.
type Comparison struct {
	Load      string           `json:"load"`
	Calls     int64            `json:"calls"`            // of methods with rules
	Others    int64            `json:"others,omitempty"` // calls of other methods
	Other     Other            `json:"firstOther,omitzero"`
	Otherwise int64            `json:"otherwise"` // calls that are decided otherwise
	Rules     []RuleComparison `json:"rules"`     // of all methods
}

// Other is a call of a method without rules.
type Other struct {
	Method string `json:"method"`
	Line   int    `json:"line"`
}

// RuleComparison is a rule of a method before and now. In shadow mode, the rule counts what it would have decided.
type RuleComparison struct {
	Method       string       `json:"method"`
	Rule         string       `json:"rule"`
	RuleBefore   string       `json:"ruleBefore,omitempty"` // the name before, if it was another
	Before       string       `json:"before,omitempty"`     // the arguments of the directive; "" if the rule is new
	Now          string       `json:"now,omitempty"`        // likewise; "" if the rule is gone
	NotCompared  string       `json:"notCompared,omitempty"`
	NotSimulated []string     `json:"notSimulated,omitempty"` // arguments that are ignored
	Calls        int64        `json:"calls"`                  // to which the rule applies, before or now; 0 if it is not compared
	Differences  []Difference `json:"differences,omitempty"`  // each pair of Was and Now once, the most calls first

	pair pair
}

// Difference are the calls that a rule decided as Was and decides as Now.
type Difference struct {
	Was       Verdict    `json:"was"`
	Now       Verdict    `json:"now"`
	Calls     int64      `json:"calls"`
	Keys      []KeyCalls `json:"keys,omitempty"`      // the most calls first; none if the rule has no key
	OtherKeys int64      `json:"otherKeys,omitempty"` // calls of keys after the first 10,000
	First     Example    `json:"first"`

	keys map[string]int64
}

// KeyCalls is a number of calls of a key.
type KeyCalls struct {
	Key   string `json:"key"`
	Calls int64  `json:"calls"`
}

// Example is a call.
type Example struct {
	Time time.Time `json:"time"`
	Line int       `json:"line"`
	Key  string    `json:"key,omitempty"`
	Was  Decision  `json:"was"`
	Now  Decision  `json:"now"`
}

// Decision is what a rule decides about a call.
type Decision struct {
	Verdict Verdict  `json:"verdict"`
	Delay   Duration `json:"delay,omitempty"` // how long an admitted call waited, or the retry delay of a refusal
	Never   bool     `json:"never,omitempty"` // the rule refuses every such call
}

// Verdict is a kind of decision. The zero value is Admitted.
type Verdict uint8

const (
	Admitted    Verdict = iota // at once; also if there is no rule, or it does not apply
	Waited                     // admitted after a wait
	Refused                    // the rule refused the call
	WouldRefuse                // the rule would have refused the call, were it not in shadow mode
)

// String returns the verdict in words.
func (v Verdict) String() string {
	return [...]string{"admitted", "waited", "refused", "would refuse"}[v]
}

// MarshalText returns the verdict in words.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// String returns the decision in words, such as "refused for 48s".
func (d Decision) String() string {
	switch {
	case d.Never:
		return d.Verdict.String() + " for ever"
	case d.Delay > 0:
		return d.Verdict.String() + " for " + inWords(time.Duration(d.Delay))
	}
	return d.Verdict.String()
}

// maxDifferentKeys is the largest number of keys of a difference that are counted one by one.
const maxDifferentKeys = 10_000

func newRuleComparison(p pair) RuleComparison {
	rule := p.either()
	r := RuleComparison{Method: rule.Method, Rule: rule.Name, NotSimulated: rule.Ignored, pair: p}
	if p.now != nil {
		r.Now = p.now.Text
	}
	if p.was != nil {
		if r.Before = p.was.Text; p.was.Name != r.Rule {
			r.RuleBefore = p.was.Name
		}
		r.NotSimulated = slices.Compact(slices.Sorted(slices.Values(slices.Concat(rule.Ignored, p.was.Ignored))))
	}
	return r
}

// Passes reports whether no call is decided otherwise, and each rule that is new, gone or changed is compared.
func (c *Comparison) Passes() bool {
	return c.Otherwise == 0 && !slices.ContainsFunc(c.Rules, func(r RuleComparison) bool { return r.NotCompared != "" && r.Before != r.Now })
}

// add counts a call.
func (c *Comparison) add(call *compared) {
	otherwise := false
	for i, rule := range call.method.rules {
		was, now := call.rulings[i][0], call.rulings[i][1]
		if was.applies || now.applies {
			rule.Calls++
		}
		shadow := was.Verdict == WouldRefuse || now.Verdict == WouldRefuse
		if was.Verdict != now.Verdict && (call.whole[0] != call.whole[1] || shadow) {
			rule.add(Example{Time: call.at, Line: call.line, Key: cmp.Or(now.key, was.key), Was: was.Decision, Now: now.Decision})
			otherwise = true
		}
	}
	if otherwise {
		c.Otherwise++
	}
}

// add counts a call that the rule decides otherwise.
func (r *RuleComparison) add(e Example) {
	i := slices.IndexFunc(r.Differences, func(d Difference) bool { return d.Was == e.Was.Verdict && d.Now == e.Now.Verdict })
	if i < 0 {
		i = len(r.Differences)
		r.Differences = append(r.Differences, Difference{Was: e.Was.Verdict, Now: e.Now.Verdict, keys: map[string]int64{}})
	}
	d := &r.Differences[i]
	if d.Calls++; d.Calls == 1 || e.Line < d.First.Line { // calls that wait are decided out of order
		d.First = e
		d.First.Key = strings.Clone(e.Key) // not the whole line
	}
	switch _, known := d.keys[e.Key]; {
	case e.Key == "":
	case known || len(d.keys) < maxDifferentKeys:
		d.keys[strings.Clone(e.Key)]++
	default:
		d.OtherKeys++
	}
}

// sort sorts the differences and their keys.
func (c *Comparison) sort() {
	for i := range c.Rules {
		differences := c.Rules[i].Differences
		slices.SortStableFunc(differences, func(a, b Difference) int { return cmp.Compare(b.Calls, a.Calls) })
		for i := range differences {
			d := &differences[i]
			for key, calls := range d.keys {
				d.Keys = append(d.Keys, KeyCalls{key, calls})
			}
			slices.SortFunc(d.Keys, func(a, b KeyCalls) int { return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Key, b.Key)) })
		}
	}
}

// PrintTable prints how many calls each rule decides otherwise, with the first call of each kind, and which rules differ or are not compared.
func (c *Comparison) PrintTable(out io.Writer) error {
	verb := "are"
	if c.Otherwise == 1 {
		verb = "is"
	}
	fmt.Fprintf(out, "%s: %s, %d of them %s decided otherwise", printable.Text(c.Load, 80), period.Count(c.Calls, "call"), c.Otherwise, verb)
	if c.Others > 0 {
		fmt.Fprintf(out, "; %s of other methods left out, the first of \"%s\" in line %d",
			period.Count(c.Others, "call"), printable.Text(c.Other.Method, 100), c.Other.Line)
	}
	fmt.Fprint(out, "\n")
	if err := c.printDifferences(out); err != nil {
		return err
	}
	return c.printNotes(out)
}

func (c *Comparison) printDifferences(out io.Writer) error {
	if c.Otherwise == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "METHOD\tRULE\tWAS\tNOW\tCALLS\tKEYS\tFIRST")
	for i := range c.Rules {
		r := &c.Rules[i]
		for _, d := range r.Differences {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", printable.Text(r.Method, 100), c.label(r), d.Was, d.Now, d.Calls, d.keyCount(), &d.First)
		}
	}
	return t.Flush()
}

// keyCount returns the number of keys as text.
func (d *Difference) keyCount() string {
	switch {
	case len(d.Keys) == 0:
		return "-"
	case d.OtherKeys > 0:
		return fmt.Sprintf("over %d", len(d.Keys))
	}
	return fmt.Sprint(len(d.Keys))
}

// String returns the example in words: its time, its key, and what was and what is decided.
func (e *Example) String() string {
	text := e.Time.Format(time.RFC3339Nano) + " "
	if e.Key != "" {
		text += printable.Text(e.Key, 40) + " "
	}
	return text + e.Was.String() + ", now " + e.Now.String()
}

// label returns the name of a rule, with its arguments if other rules of the method have this name.
func (c *Comparison) label(r *RuleComparison) string {
	for i := range c.Rules {
		if o := &c.Rules[i]; o != r && o.Method == r.Method && o.Rule == r.Rule {
			return printable.Text(r.Rule+" "+cmp.Or(r.Now, r.Before), 100)
		}
	}
	return printable.Text(r.Rule, 100)
}

// note is what there is to say about a rule of methods.
type note struct{ what, rule, text string }

// printNotes prints which rules have changed, and what is left out. A rule of several methods has one line.
func (c *Comparison) printNotes(out io.Writer) (err error) {
	var notes []note
	methods := map[note][]string{}
	for i := range c.Rules {
		for _, n := range c.notes(&c.Rules[i]) {
			if methods[n] == nil {
				notes = append(notes, n)
			}
			methods[n] = append(methods[n], c.Rules[i].Method)
		}
	}
	for i, n := range notes {
		line := strings.Join(methods[n], ", ")
		if n.rule != line {
			line = n.rule + " of " + line
		}
		if line = n.what + ": " + line; n.text != "" {
			line += ": " + n.text
		}
		if i == 0 {
			fmt.Fprintln(out)
		}
		_, err = fmt.Fprintln(out, printable.Text(line, 1000))
	}
	return err
}

// notes returns how the rule has changed, and what is left out.
func (c *Comparison) notes(r *RuleComparison) (notes []note) {
	add := func(what, text string) { notes = append(notes, note{what, r.Rule, text}) }
	switch {
	case r.Before == "":
		add("new", r.Now)
	case r.Now == "":
		add("gone", r.Before)
	case r.Before != r.Now:
		add("changed", r.Now+"; was "+r.Before)
	case r.RuleBefore != "":
		add("renamed", "was "+r.RuleBefore)
	}
	if r.NotCompared != "" {
		add("not compared", r.NotCompared)
		return notes
	}
	if len(r.NotSimulated) > 0 {
		add("not simulated", strings.Join(r.NotSimulated, ", "))
	}
	if r.Calls == 0 {
		notes = append(notes, note{"no calls", c.label(r), ""})
	}
	return notes
}
