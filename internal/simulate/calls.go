package simulate

import (
	"fmt"
	"io"
	"iter"
	"os"
	"time"
)

// Calls are the calls of a load in the order of time. They are read one after the other, so a csv may be longer than the memory.
type Calls struct {
	io.Closer        // the file of a csv
	Text      string // the load as the user wrote it
	Runs      time.Duration

	columns columns
	rows    iter.Seq2[row, error] // an error is the last
}

// OpenCalls returns the calls of a csv, as [ReadCalls] does. The caller closes them.
func OpenCalls(name string, span Span) (*Calls, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	c, err := ReadCalls(f, span)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.Text, c.Closer = "csv:"+name, f
	return c, nil
}

// ReadCalls returns the calls of a csv as [ReadCSV] reads it, but the lines must be sorted by time. A first line with the field timestamp may name
// these columns besides: method, limit and when, and texts of keys and expressions, such as {phone} or perDay(plan). See [Compare].
func ReadCalls(in io.Reader, span Span) (*Calls, error) {
	t, err := newTable(in)
	if err != nil {
		return nil, err
	}
	if n := len(t.first.fields); n > 0 {
		t.columns = t.columns[:min(n, len(t.columns))]
	}
	return &Calls{Closer: io.NopCloser(in), Runs: span.Runs, columns: t.columns, rows: t.sorted(span)}, nil
}

// Stream returns the calls of a load, which have a timestamp and a key.
func (l *Load) Stream() *Calls {
	rows := func(yield func(row, error) bool) {
		fields := make([]string, 2)
		for i, c := range l.Calls {
			fields[1] = l.Keys[c.Key]
			if !yield(row{i + 1, l.Start.Add(c.After).UTC().Truncate(time.Microsecond), fields}, nil) {
				return
			}
		}
	}
	return &Calls{Closer: io.NopCloser(nil), Text: l.Text, Runs: l.Runs, columns: usual[:2], rows: rows}
}
