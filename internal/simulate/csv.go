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
	key  int
	cost int64
}

// ReadCSV reads the calls of a load: one in a line, with a timestamp, a key and a cost. The timestamp is in RFC 3339 or in seconds
// since 1970. The key and the cost may be absent. A first line that begins with the word timestamp is skipped, and the lines need
// not be sorted.
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
		l.Calls = append(l.Calls, Call{time.Duration(after) * time.Microsecond, r.key, r.cost})
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

// readRows fills the keys of the load and returns the calls of the file.
func (l *Load) readRows(in io.Reader) ([]row, error) {
	reader := csv.NewReader(in)
	reader.FieldsPerRecord, reader.ReuseRecord, reader.TrimLeadingSpace = -1, true, true
	known := map[string]int{}
	var rows []row
	for {
		fields, err := reader.Read()
		if err == io.EOF {
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
		r, key, err := parseRow(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		n, ok := known[key]
		if !ok {
			n, key = len(l.Keys), strings.Clone(key)
			known[key] = n
			l.Keys = append(l.Keys, key)
		}
		r.key = n
		rows = append(rows, r)
	}
}

func parseRow(fields []string) (r row, key string, err error) {
	if len(fields) > 3 {
		return r, "", fmt.Errorf("found %d fields; expected timestamp,key,cost", len(fields))
	}
	if r.at, err = parseTime(fields[0]); err != nil {
		return r, "", err
	}
	if len(fields) > 1 {
		key = fields[1]
	}
	if len(fields) > 2 && fields[2] != "" {
		if r.cost, err = strconv.ParseInt(fields[2], 10, 64); err != nil || r.cost < 1 {
			return r, "", fmt.Errorf("the cost is %q; expected an integer of at least 1", fields[2])
		}
	}
	return r, key, nil
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
