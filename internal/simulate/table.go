package simulate

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// shownKeys is the largest number of keys of a rule in the table.
const shownKeys = 5

// PrintTable prints the refused calls by rule and key. For each rule it prints the keys with the most refused calls.
func (r *Result) PrintTable(out io.Writer) error {
	total := r.Admitted + r.Refused
	fmt.Fprintf(out, "%s: %s, %s; %d admitted%s, %d refused%s\n\n", r.Load, period.Count(total, "call"),
		period.Count(int64(len(r.Load.Keys)), "key"), r.Admitted, r.waits(), r.Refused, share(r.Refused, total))
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "RULE\tKEY\tCALLS\tREFUSED\tLONGEST RETRY DELAY")
	for i := range r.Rules {
		r.Rules[i].print(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, rule := range r.Rules {
		if ignored := rule.Ignored; len(ignored) > 0 {
			fmt.Fprintf(out, "\nnot simulated: %s of %s\n", strings.Join(ignored, ", "), printable.Text(rule.Rule.Text, 200))
		}
	}
	return nil
}

// waits describes how many of the admitted calls waited, and how long.
func (r *Result) waits() string {
	if r.Waited == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d after up to %s)", r.Waited, inWords(time.Duration(r.LongestWait)))
}

// String describes a load in a few words.
func (l *Load) String() string {
	text := printable.Text(l.Text, 80) + " for " + period.Format(max(l.Length.Round(time.Millisecond), time.Millisecond))
	if l.Start.Year() == 1970 { // the timestamps of the file probably count from its own start
		return text
	}
	return text + " from " + l.Start.Format(time.RFC3339)
}

func (r *RuleResult) print(t io.Writer) {
	text := printable.Text(r.Rule.Text, 100)
	row := func(key string, k KeyResult) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d%s\t%s\n", text, key, k.Calls, k.Refused, share(k.Refused, k.Calls), k.delay())
		text = ""
	}
	row("all", r.All)
	for _, k := range r.Keys[:min(len(r.Keys), shownKeys)] {
		row(printable.Text(k.Key, 40), k)
	}
	if more := len(r.Keys) - shownKeys; more > 0 {
		row(fmt.Sprintf("%d more", more), together(r.Keys[shownKeys:]))
	}
}

// delay returns the longest delay in words.
func (k *KeyResult) delay() string {
	switch {
	case k.Refused == 0:
		return "-"
	case k.Never && k.LongestDelay == 0:
		return "never admitted"
	}
	return inWords(time.Duration(k.LongestDelay))
}

func inWords(d time.Duration) string {
	if d >= time.Second {
		return period.Format(d.Round(10 * time.Millisecond))
	}
	return d.String()
}

// share returns a percentage in parentheses, or "" if part is 0.
func share(part, whole int64) string {
	if part == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.1f%%)", 100*float64(part)/float64(whole))
}
