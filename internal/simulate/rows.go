package simulate

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// row is one call of a table.
type row struct {
	line   int       // where it stands in the csv; it counts from 1
	at     time.Time // in UTC, in whole microseconds
	fields []string  // valid until the next row is read
}

// wrong returns an error with the line of the row.
func (r row) wrong(err error) error { return fmt.Errorf("line %d: %w", r.line, err) }

// field returns a field, or "" if it is absent. The index is -1 if no column has it.
func (r row) field(i int) string {
	if i >= 0 && i < len(r.fields) {
		return r.fields[i]
	}
	return ""
}

// columns are the names of the columns of a table.
type columns []string

// usual are the columns of a csv whose first line does not name them.
var usual = columns{"timestamp", "key", "cost", "member", "anchor"}

// index returns the index of the first column with one of these names, or -1.
func (c columns) index(names ...string) int {
	for _, name := range names {
		if i := slices.Index(c, name); i >= 0 {
			return i
		}
	}
	return -1
}

// table is a csv whose first line was read.
type table struct {
	columns
	reader *csv.Reader
	first  row // the first line; it has no fields if it names the columns
}

// byteOrderMark begins files of some spreadsheets.
const byteOrderMark = "\ufeff"

var errNoCalls = errors.New("found no calls")

func newTable(in io.Reader) (*table, error) {
	text := bufio.NewReader(in)
	if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		text.Discard(len(byteOrderMark))
	}
	t := &table{columns: usual, reader: csv.NewReader(text)}
	t.reader.FieldsPerRecord, t.reader.ReuseRecord, t.reader.TrimLeadingSpace = -1, true, true
	var err error
	if t.first, err = t.read(); err == io.EOF {
		return nil, errNoCalls
	}
	if err != nil {
		return nil, err
	}
	fields := t.first.fields
	if len(fields) == 1 && strings.ContainsAny(fields[0], ";\t") {
		return nil, t.first.wrong(errors.New("the first line has one column; columns are separated by commas"))
	}
	if slices.ContainsFunc(fields, func(name string) bool { return strings.EqualFold(name, usual[0]) }) {
		t.first.fields = nil
		err = t.name(fields)
	}
	return t, err
}

// name sets the names of the columns. A name such as Method is that of the column method; texts of keys and expressions stay as they are.
func (t *table) name(names []string) error {
	known := append(slices.Clone(usual), "method")
	for _, v := range values {
		known = append(known, v.name)
	}
	t.columns = nil
	for _, name := range names {
		if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(name, k) }); i >= 0 {
			name = known[i]
		}
		if name != "" && slices.Contains(t.columns, name) {
			return t.first.wrong(fmt.Errorf("found two columns %q; expected each name once", name))
		}
		t.columns = append(t.columns, name)
	}
	return nil
}

// read reads a row without its time.
func (t *table) read() (r row, err error) {
	if r.fields, err = t.reader.Read(); err == nil {
		r.line, _ = t.reader.FieldPos(0)
	}
	return r, err
}

// rows reads the calls up to the first error.
func (t *table) rows(yield func(row, error) bool) {
	r, err := t.first, error(nil)
	if r.fields == nil {
		r, err = t.read()
	}
	for ; err != io.EOF; r, err = t.read() {
		if err == nil {
			err = t.setTime(&r)
		}
		if !yield(r, err) || err != nil {
			return
		}
	}
}

func (t *table) setTime(r *row) (err error) {
	if len(r.fields) > len(t.columns) {
		return r.wrong(fmt.Errorf("found %d fields; expected %s", len(r.fields), printable.Text(strings.Join(t.columns, ","), 200)))
	}
	if r.at, err = parseTime("timestamp", r.field(t.index(usual[0])), epoch); err != nil {
		return r.wrong(err)
	}
	return nil
}

// sorted returns the rows of a span. A row that is not sorted by time is an error.
func (t *table) sorted(span Span) func(yield func(row, error) bool) {
	return func(yield func(row, error) bool) {
		var last time.Time
		for r, err := range t.rows {
			if err == nil && r.at.Before(last) {
				err = r.wrong(fmt.Errorf("the timestamp %q is before that of the call above; sort the lines by time", r.field(t.index(usual[0]))))
			}
			if err != nil {
				yield(r, err)
				return
			}
			if last = r.at; span.Start.IsZero() {
				span.Start = r.at
			}
			after := r.at.Sub(span.Start)
			if span.Length > 0 && after >= span.Length || after >= 0 && !yield(r, nil) {
				return
			}
		}
	}
}

// The range of times in a csv. Those of calls begin at epoch, anchors at earliest.
var (
	epoch    = time.Unix(0, 0).UTC()
	latest   = time.Unix(9_000_000_000, 0)  // in 2255
	earliest = time.Unix(-9_000_000_000, 0) // in 1684
)

// parseTime returns the time in UTC and in whole microseconds. It is not before first. Errors call it name.
func parseTime(name, text string, first time.Time) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= float64(first.Unix()) && seconds < float64(latest.Unix()) {
		return epoch.Add(time.Duration(math.Floor(seconds*1e6+0.5)) * time.Microsecond), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Before(first) || t.After(latest) {
		return t, fmt.Errorf("the %s is %q; expected one such as 2026-03-02T09:00:00Z, or seconds since 1970", name, text)
	}
	return t.UTC().Truncate(time.Microsecond), nil
}
