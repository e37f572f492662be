package simulate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// OpenCSV returns the load that a file has: see [ReadCSV].
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

// row is a call as a file has it.
type row struct {
	at   int64 // microseconds since 1970
	cost int64

	key, member int
}

// ReadCSV reads the calls of a load: one in a line, with a timestamp, a key, a cost and a member. The timestamp is in RFC 3339 or in
// seconds since 1970. All but the timestamp may be absent. A first line that begins with the word timestamp is skipped, and the lines
// need not be sorted.
func ReadCSV(in io.Reader, span Span) (*Load, error) {
	l := &Load{Start: span.Start, Length: span.Length}
	rows, err := l.readRows(in)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("found no calls")
	}
	if l.Start.IsZero() {
		l.Start = time.UnixMicro(first(rows)).UTC()
	}
	start := l.Start.UnixMicro()
	for _, r := range rows {
		after := r.at - start
		if after < 0 || span.Length > 0 && after >= span.Length.Microseconds() {
			continue
		}
		if after > maxLength.Microseconds() {
			after = maxLength.Microseconds() + 1 // check refuses it
		}
		l.Calls = append(l.Calls, Call{time.Duration(after) * time.Microsecond, r.key, r.cost, r.member})
	}
	l.sort()
	if len(l.Calls) == 0 {
		return nil, fmt.Errorf("found no calls from %s on", l.Start.Format(time.RFC3339))
	}
	if l.Length == 0 {
		l.Length = l.Calls[len(l.Calls)-1].After + time.Microsecond // so that the last call is within
	}
	return l, l.check(0)
}

func first(rows []row) int64 {
	earliest := rows[0].at
	for _, r := range rows {
		earliest = min(earliest, r.at)
	}
	return earliest
}

// names numbers texts in the order in which they come.
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

// readRows fills the keys and members of the load and returns the calls of the file.
func (l *Load) readRows(in io.Reader) ([]row, error) {
	reader := csv.NewReader(in)
	reader.FieldsPerRecord, reader.ReuseRecord, reader.TrimLeadingSpace = -1, true, true
	keys, members := &names{number: map[string]int{}}, &names{number: map[string]int{}}
	var rows []row
	for {
		fields, err := reader.Read()
		if err == io.EOF {
			l.Keys, l.Members = keys.texts, members.texts
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := reader.FieldPos(0)
		if len(rows) == 0 && strings.EqualFold(fields[0], "timestamp") {
			continue
		}
		if len(rows) == maxCalls {
			return nil, fmt.Errorf("line %d: the load has more calls than are possible, %d", line, maxCalls)
		}
		r, err := parseRow(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		r.key, r.member = keys.of(field(fields, 1)), members.of(field(fields, 3))
		rows = append(rows, r)
	}
}

func parseRow(fields []string) (r row, err error) {
	if len(fields) > 4 {
		return r, fmt.Errorf("found %d fields; expected timestamp,key,cost,member", len(fields))
	}
	if r.at, err = parseTime(fields[0]); err != nil {
		return r, err
	}
	if cost := field(fields, 2); cost != "" {
		if r.cost, err = strconv.ParseInt(cost, 10, 64); err != nil || r.cost < 1 {
			return r, fmt.Errorf("the cost is %q; expected an integer of at least 1", cost)
		}
	}
	return r, nil
}

// field returns a field, or "" if it is absent.
func field(fields []string, i int) string {
	if i < len(fields) {
		return fields[i]
	}
	return ""
}

// maxSeconds is the end of the year 9999.
const maxSeconds = 253_402_300_799

// parseTime returns microseconds since 1970.
func parseTime(text string) (int64, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 && seconds <= maxSeconds {
		return int64(seconds*1e6 + 0.5), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Unix() < 0 {
		return 0, fmt.Errorf("the timestamp is %q; expected one such as 2026-03-02T09:00:00Z, or seconds since 1970", text)
	}
	return t.UnixMicro(), nil
}
