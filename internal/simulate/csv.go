package simulate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
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

// ReadCSV reads the calls of a load, one a line, with a timestamp, a key, a cost and a member. The timestamp is in RFC 3339 or in
// seconds since 1970. The other fields may be absent if no rule needs them. ReadCSV skips a first line that begins with the word timestamp. The lines need
// not be sorted.
func ReadCSV(in io.Reader, span Span) (*Load, error) {
	l := &Load{Start: span.Start, Length: span.Length, Runs: span.Runs}
	if err := l.readCalls(in); err != nil {
		return nil, err
	}
	if len(l.Calls) == 0 {
		return nil, errors.New("found no calls")
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

// readCalls adds the calls of a file with their keys and members. The times of the calls count from 1970.
func (l *Load) readCalls(in io.Reader) error {
	reader := csv.NewReader(in)
	reader.FieldsPerRecord, reader.ReuseRecord, reader.TrimLeadingSpace = -1, true, true
	keys, members := &names{number: map[string]int{}}, &names{number: map[string]int{}}
	for {
		fields, err := reader.Read()
		if err == io.EOF {
			l.Keys, l.Members = keys.texts, members.texts
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := reader.FieldPos(0)
		if len(l.Calls) == 0 && strings.EqualFold(fields[0], "timestamp") {
			continue
		}
		if len(l.Calls) == maxCalls {
			return fmt.Errorf("line %d: the load has more calls than are possible, %d", line, maxCalls)
		}
		c, err := parseCall(fields)
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		c.Key, c.Member = keys.of(field(fields, 1)), members.of(field(fields, 3))
		l.Calls = append(l.Calls, c)
		for i, first := range []*int{&l.noKey, &l.noCost, &l.noMember} {
			if *first == 0 && field(fields, i+1) == "" {
				*first = line
			}
		}
	}
}

// lacks returns the error for a line of a csv without something that a rule needs.
func (l *Load) lacks(what string, line int, rule Rule) error {
	return fmt.Errorf("%s: line %d: the %s is missing; the rule %q needs one in each line", strings.TrimPrefix(l.Text, "csv:"), line, what, rule.Text)
}

func parseCall(fields []string) (c Call, err error) {
	if len(fields) > 4 {
		return c, fmt.Errorf("found %d fields; expected timestamp,key,cost,member", len(fields))
	}
	if c.After, err = parseTime(fields[0]); err != nil {
		return c, err
	}
	if cost := field(fields, 2); cost != "" {
		if c.Cost, err = strconv.ParseInt(cost, 10, 64); err != nil || c.Cost < 1 {
			return c, fmt.Errorf("the cost is %q; expected an integer of at least 1", cost)
		}
	}
	return c, nil
}

// field returns a field, or "" if it is absent.
func field(fields []string, i int) string {
	if i < len(fields) {
		return fields[i]
	}
	return ""
}

// The range of timestamps in a file. A duration can count from epoch to latest.
var (
	epoch  = time.Unix(0, 0).UTC()
	latest = 9_000_000_000 * time.Second // in 2255
)

// parseTime returns the time since 1970, in whole microseconds.
func parseTime(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 && seconds < latest.Seconds() {
		return time.Duration(seconds*1e6+0.5) * time.Microsecond, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Before(epoch) || t.Sub(epoch) > latest {
		return 0, fmt.Errorf("the timestamp is %q; expected one such as 2026-03-02T09:00:00Z, or seconds since 1970", text)
	}
	return t.Sub(epoch).Truncate(time.Microsecond), nil
}
