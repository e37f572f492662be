package simulate

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Calls are the calls of a load in the order of time. They are read one after the other, so a csv may be longer than the memory.
type Calls struct {
	Text string // the load as the user wrote it
	Runs time.Duration

	table *table
	span  Span
	last  time.Duration // the time of the call that was read last, since 1970
	close func() error
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
	c.Text, c.close = "csv:"+name, f.Close
	return c, nil
}

// ReadCalls returns the calls of a csv as [ReadCSV] reads it, but the lines must be sorted by time. A first line with the field timestamp may name
// these columns besides: method, limit and when, and texts of keys and expressions, such as {phone} or perDay(plan). See [Compare].
func ReadCalls(in io.Reader, span Span) (*Calls, error) {
	t, err := newTable(in)
	if err != nil {
		return nil, err
	}
	if !t.named && len(t.first) < len(t.columns) {
		t.columns = t.columns[:len(t.first)]
	}
	return &Calls{Runs: span.Runs, table: t, span: span, close: func() error { return nil }}, nil
}

// Stream returns the calls of a load, which have a timestamp and a key.
func (l *Load) Stream() *Calls {
	t := &table{columns: usual[:2]}
	fields := make([]string, len(t.columns))
	t.read = func() ([]string, error) {
		if t.line == len(l.Calls) {
			return nil, io.EOF
		}
		c := l.Calls[t.line]
		t.line++
		fields[0], fields[1] = l.Start.Add(c.After).Format(time.RFC3339Nano), l.Keys[c.Key]
		return fields, nil
	}
	return &Calls{Text: l.Text, Runs: l.Runs, table: t, close: func() error { return nil }}
}

// Close closes the file of a csv.
func (c *Calls) Close() error { return c.close() }

// next returns the fields of the next call within the span, and its time since 1970. At the end it returns io.EOF.
func (c *Calls) next() (fields []string, at time.Duration, err error) {
	for {
		if fields, err = c.table.next(); err != nil {
			return nil, 0, err
		}
		if at, err = c.table.when(fields); err != nil {
			return nil, 0, c.table.at(err)
		}
		if at < c.last {
			return nil, 0, c.table.at(fmt.Errorf("the timestamp %q is before that of the call above; sort the lines by time", field(fields, c.table.column(usual[0]))))
		}
		c.last = at
		if c.span.Start.IsZero() {
			c.span.Start = epoch.Add(at)
		}
		switch after := epoch.Add(at).Sub(c.span.Start); {
		case after < 0:
		case c.span.Length > 0 && after >= c.span.Length:
			return nil, 0, io.EOF
		default:
			return fields, at, nil
		}
	}
}
