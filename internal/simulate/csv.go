package simulate

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// OpenCSV returns the load in a file: see [ReadCSV].
func OpenCSV(name string, span Span) (*Load, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l, err := ReadCSV(f, span)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l.Text = "csv:" + name
	return l, nil
}

// ReadCSV reads the calls of a load, one a line, with a timestamp, a key, a cost, a member and an anchor. The timestamp and the anchor are in RFC
// 3339 or in seconds since 1970. The other fields may be absent if no rule needs them. A first line with the field timestamp names the columns, which
// then come in any order. The lines need not be sorted.
func ReadCSV(in io.Reader, span Span) (*Load, error) {
	t, err := newTable(in)
	if err != nil {
		return nil, err
	}
	l := &Load{Start: span.Start, Length: span.Length, Runs: span.Runs, without: map[string]int{}}
	if err := l.readCalls(t); err != nil {
		return nil, err
	}
	if len(l.Calls) == 0 {
		return nil, errNoCalls
	}
	l.sort()
	if l.Start.IsZero() {
		l.Start = epoch.Add(l.Calls[0].After)
	}
	if l.Start.Before(epoch) {
		return nil, fmt.Errorf("found a load that starts at %s; expected 1970 or later", l.Start.Format(time.RFC3339))
	}
	all, start := l.Calls, l.Start.Sub(epoch)
	l.Calls = all[:0]
	for _, call := range all {
		if call.After -= start; call.After >= 0 && (l.Length == 0 || call.After < l.Length) {
			l.Calls = append(l.Calls, call)
		}
	}
	if len(l.Calls) == 0 {
		return nil, fmt.Errorf("found no calls from %s on", l.Start.Format(time.RFC3339))
	}
	if l.Length == 0 {
		l.Length = l.Calls[len(l.Calls)-1].After + time.Microsecond // includes the last call
	}
	return l, l.check(0)
}

// everything is a rule that needs the value of each usual column.
var everything = Rule{Rule: ratelimit.Rule{Key: "key", Distinct: "member"}, CostExpr: "cost", AnchorExpr: "anchor"}

// readCalls adds the calls of a csv to the load, with their keys and members. A call may lack values. Its time counts from 1970.
func (l *Load) readCalls(t *table) error {
	for _, name := range t.columns {
		if !slices.Contains(usual, name) {
			return t.first.wrong(fmt.Errorf("found the column %q; expected %s; other columns are for -against", name, strings.Join(usual, ", ")))
		}
	}
	needs := t.needs(&everything)
	keys, members := names{number: map[string]int{}}, names{number: map[string]int{}}
	for r, err := range t.rows {
		if err != nil {
			return err
		}
		if len(l.Calls) == maxCalls {
			return r.wrong(fmt.Errorf("the load has more calls than are possible, %d", maxCalls))
		}
		c := wrap.Charge{Cost: noCost}
		for _, n := range needs {
			if field := r.field(n.column); field != "" {
				err = cmp.Or(err, n.set(&c, field))
			} else if l.without[n.name] == 0 {
				l.without[n.name] = r.line
			}
		}
		if err != nil {
			return r.wrong(err)
		}
		l.Calls = append(l.Calls, Call{After: r.at.Sub(epoch), Key: keys.of(c.Key), Cost: c.Cost, Member: members.of(c.Member), Anchor: c.Anchor})
	}
	l.Keys, l.Members = keys.texts, members.texts
	return nil
}

// names numbers texts in the order of their first use.
type names struct {
	texts  []string
	number map[string]int
}

func (n *names) of(text string) int {
	i, ok := n.number[text]
	if !ok {
		i, text = len(n.texts), strings.Clone(text)
		n.number[text] = i
		n.texts = append(n.texts, text)
	}
	return i
}

// lacks returns the error for a line of a csv without a value that a rule needs.
func (l *Load) lacks(name string, rule Rule) error {
	return fmt.Errorf("%s: line %d: the %s is missing; the rule %q needs one in each line", strings.TrimPrefix(l.Text, "csv:"), l.without[name], name, rule.Text)
}
