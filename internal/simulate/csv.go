package simulate

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/printable"
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
	l := &Load{Start: span.Start, Length: span.Length, Runs: span.Runs}
	if err := l.readCalls(in); err != nil {
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
	start := l.Start.Sub(epoch)
	l.Calls = slices.DeleteFunc(l.Calls, func(c Call) bool { return c.After < start || l.Length > 0 && c.After-start >= l.Length })
	if len(l.Calls) == 0 {
		return nil, fmt.Errorf("found no calls from %s on", l.Start.Format(time.RFC3339))
	}
	for i := range l.Calls {
		l.Calls[i].After -= start
	}
	if l.Length == 0 {
		l.Length = l.Calls[len(l.Calls)-1].After + time.Microsecond // includes the last call
	}
	return l, l.check(0)
}

var errNoCalls = errors.New("found no calls")

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

// usual are the columns of a csv whose first line does not name them.
var usual = []string{"timestamp", "key", "cost", "member", "anchor"}

// table reads the lines of a csv, each a call.
type table struct {
	read    func() (fields []string, err error) // reads the next line, and sets line
	columns []string                            // their names
	named   bool                                // the first line names the columns
	first   []string                            // the fields of the first call, until next returns them
	line    int                                 // where the fields stand that were read last; it counts from 1
}

// newTable returns the table of a csv before its first call.
func newTable(in io.Reader) (*table, error) {
	text := bufio.NewReader(in)
	if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		text.Discard(len(byteOrderMark))
	}
	reader, t := csv.NewReader(text), &table{columns: usual}
	reader.FieldsPerRecord, reader.ReuseRecord, reader.TrimLeadingSpace = -1, true, true
	t.read = func() ([]string, error) {
		fields, err := reader.Read()
		if err == nil {
			t.line, _ = reader.FieldPos(0)
		}
		return fields, err
	}
	first, err := t.read()
	if err == io.EOF {
		return nil, errNoCalls
	}
	if err != nil {
		return nil, err
	}
	if len(first) == 1 && strings.ContainsAny(first[0], ";\t") {
		return nil, t.at(errors.New("the first line has one column; columns are separated by commas"))
	}
	timestamp := func(name string) bool { return strings.EqualFold(name, usual[0]) }
	if t.named = slices.ContainsFunc(first, timestamp); !t.named {
		t.first = first
		return t, nil
	}
	return t, t.name(first)
}

// byteOrderMark begins files of some spreadsheets.
const byteOrderMark = "\ufeff"

// name sets the names of the columns. A name such as Method is that of the column method; texts of keys and expressions stay as they are.
func (t *table) name(columns []string) error {
	t.columns = nil
	for _, name := range columns {
		for _, known := range slices.Concat(usual, valueColumns[:], []string{"method"}) {
			if strings.EqualFold(name, known) {
				name = known
			}
		}
		if name != "" && slices.Contains(t.columns, name) {
			return t.at(fmt.Errorf("found two columns %q; expected each name once", name))
		}
		t.columns = append(t.columns, name)
	}
	return nil
}

// next returns the fields of the next call, which are valid until the next call of next. At the end of the file it returns io.EOF.
func (t *table) next() (fields []string, err error) {
	if fields = t.first; fields != nil {
		t.first = nil
		return fields, nil
	}
	return t.read()
}

// column returns the index of the first column with one of these names, or -1.
func (t *table) column(names ...string) int {
	for _, name := range names {
		if i := slices.Index(t.columns, name); i >= 0 {
			return i
		}
	}
	return -1
}

// at returns an error with the line that was read last.
func (t *table) at(err error) error { return fmt.Errorf("line %d: %w", t.line, err) }

// when returns the time of a call since 1970.
func (t *table) when(fields []string) (time.Duration, error) {
	if len(fields) > len(t.columns) {
		return 0, fmt.Errorf("found %d fields; expected %s", len(fields), printable.Text(strings.Join(t.columns, ","), 200))
	}
	return parseTime("timestamp", field(fields, t.column(usual[0])), 0)
}

// readCalls adds the calls of a file with their keys, members and anchors. The times of the calls count from 1970.
func (l *Load) readCalls(in io.Reader) error {
	t, err := newTable(in)
	if err != nil {
		return err
	}
	for _, name := range t.columns {
		if !slices.Contains(usual, name) {
			return t.at(fmt.Errorf("found the column %q; expected %s; other columns are for -against", name, strings.Join(usual, ", ")))
		}
	}
	columns := [...]int{t.column("key"), t.column("cost"), t.column("member"), t.column("anchor")}
	keys, members, anchors := &names{number: map[string]int{}}, &names{number: map[string]int{}}, &names{number: map[string]int{}}
	for {
		fields, err := t.next()
		if err == io.EOF {
			l.Keys, l.Members = keys.texts, members.texts
			return nil
		}
		if err != nil {
			return err
		}
		if len(l.Calls) == maxCalls {
			return t.at(fmt.Errorf("the load has more calls than are possible, %d", maxCalls))
		}
		var c Call
		if c.After, err = t.when(fields); err == nil {
			c.Cost, err = parseCost(field(fields, columns[1]))
		}
		if c.Anchor = anchors.of(field(fields, columns[3])); err == nil && c.Anchor == len(l.Anchors) {
			var anchor time.Time
			anchor, err = parseAnchor(anchors.texts[c.Anchor])
			l.Anchors = append(l.Anchors, anchor)
		}
		if err != nil {
			return t.at(err)
		}
		c.Key, c.Member = keys.of(field(fields, columns[0])), members.of(field(fields, columns[2]))
		l.Calls = append(l.Calls, c)
		for i, first := range []*int{&l.noKey, &l.noCost, &l.noMember} {
			if *first == 0 && field(fields, columns[i]) == "" {
				*first = t.line
			}
		}
	}
}

// lacks returns the error for a line of a csv without something that a rule needs.
func (l *Load) lacks(what string, line int, rule Rule) error {
	return fmt.Errorf("%s: line %d: the %s is missing; the rule %q needs one in each line", strings.TrimPrefix(l.Text, "csv:"), line, what, rule.Text)
}

// parseCost returns a cost, or 0 if there is none.
func parseCost(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	cost, err := strconv.ParseInt(text, 10, 64)
	if err != nil || cost < 1 {
		return 0, fmt.Errorf("the cost is %q; expected an integer of at least 1", text)
	}
	return cost, nil
}

// parseAnchor returns an anchor, or the zero time if there is none.
func parseAnchor(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil && t.IsZero() {
		return t, fmt.Errorf("the anchor is %q, which is the zero time; leave the field empty", text)
	}
	d, err := parseTime("anchor", text, -latest)
	return epoch.Add(d), err
}

// field returns a field, or "" if it is absent. The index is -1 if no column has it.
func field(fields []string, i int) string {
	if i >= 0 && i < len(fields) {
		return fields[i]
	}
	return ""
}

// The range of times in a file. A duration can count from epoch to latest, and back as far.
var (
	epoch  = time.Unix(0, 0).UTC()
	latest = 9_000_000_000 * time.Second // in 2255
)

// parseTime returns the time since 1970, in whole microseconds, which is not before first. Errors call it name.
func parseTime(name, text string, first time.Duration) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= first.Seconds() && seconds < latest.Seconds() {
		return time.Duration(math.Floor(seconds*1e6+0.5)) * time.Microsecond, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Before(epoch.Add(first)) || t.Sub(epoch) > latest {
		return 0, fmt.Errorf("the %s is %q; expected one such as 2026-03-02T09:00:00Z, or seconds since 1970", name, text)
	}
	return t.Sub(epoch).Truncate(time.Microsecond), nil
}
