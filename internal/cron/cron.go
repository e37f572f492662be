// Package cron parses the cron expressions of calendar windows. The language is that of github.com/robfig/cron. It also has ranges that go
// on after the end, such as FRI-MON and 22-2, and 7 for Sunday. Errors say what to write instead of what other schedulers have.
package cron

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

var parser = cron.NewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse parses a cron expression: next returns the first fire time after a given time, and hourly says that one comes in every hour of the day.
func Parse(expr string) (next func(time.Time) time.Time, hourly bool, err error) {
	if err := check(expr); err != nil {
		return nil, false, err
	}
	schedule, err := parse(strings.Fields(expr))
	if err != nil {
		return nil, false, err
	}
	if schedule.Next(time.Unix(0, 0).UTC()).IsZero() {
		return nil, false, fmt.Errorf("%q never comes", expr)
	}
	const allHours = 1<<24 - 1
	return schedule.Next, schedule.Hour&allHours == allHours, nil
}

// check returns an error for an expression that has another number of fields, or belongs in another argument of a rule.
func check(expr string) error {
	switch fields := strings.Fields(expr); {
	case strings.HasPrefix(expr, "TZ=") || strings.HasPrefix(expr, "CRON_TZ="):
		return errors.New("found a time zone; write it as tz=")
	case strings.HasPrefix(expr, "@every"):
		return errors.New("@every is no calendar; write per=")
	case len(fields) == 7:
		return fmt.Errorf("found 7 fields; leave out the year: %q", strings.Join(fields[:6], " "))
	case strings.HasPrefix(expr, "@") && len(fields) == 1:
	case len(fields) == 1:
		return fmt.Errorf("found %q; expected 5 fields, 6 with seconds, or a word such as @daily", expr)
	case len(fields) != 5 && len(fields) != 6:
		return fmt.Errorf("found %d fields; expected 5, or 6 with seconds", len(fields))
	}
	return nil
}

// parse parses the fields of an expression.
func parse(fields []string) (*cron.SpecSchedule, error) {
	for i := range fields {
		if len(fields) == 1 { // a word such as @daily
			break
		}
		f := allFields[i+len(allFields)-len(fields)]
		items := strings.Split(fields[i], ",")
		for j, item := range items {
			if reason := unsupported(item, f); reason != "" {
				return nil, fmt.Errorf("found %q; %s", item, reason)
			}
			items[j] = f.unroll(item)
		}
		fields[i] = strings.Join(items, ",")
	}
	schedule, err := parser.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, explain(err.Error())
	}
	return schedule.(*cron.SpecSchedule), nil
}

// explain says what is wrong with a cron expression. If a number is malformed, the parser's own text names a Go function.
func explain(text string) error {
	if _, word, ok := strings.Cut(text, "failed to parse int from "); ok {
		word, _, _ = strings.Cut(word, ": ")
		return fmt.Errorf("found %q; expected numbers, *, or the first three letters of a month or a day of the week", word)
	}
	return fmt.Errorf("%s%s", strings.ToLower(text[:1]), text[1:])
}

// unsupported says what to write instead of the extensions of other schedulers, or returns "".
func unsupported(item string, f field) string {
	last := strings.HasSuffix(item, "L") || strings.HasPrefix(item, "L-") || item == "LW"
	switch {
	case strings.Contains(item, "#"):
		return "the first, second or third of a weekday cannot be written; expected a day of the week, such as FRI, or days of the month"
	case strings.HasSuffix(item, "W") && !last && f.size == 31:
		return "the weekday next to a day cannot be written; expected the day itself, such as " + strings.TrimSuffix(item, "W")
	case last && f.size == 31:
		return "the last day of a month cannot be written; with the day 1, windows end when a month does"
	case last && f.size == 7 && len(item) < 3:
		return "the last of a weekday cannot be written; expected a day of the week, such as FRI"
	}
	return ""
}

// field is the range of the numbers in a field, and their names.
type field struct {
	first, size int
	names       []string
}

// allFields are the fields in their order. The first may be absent.
var allFields = []field{
	{0, 60, nil}, {0, 60, nil}, {0, 24, nil}, {1, 31, nil},
	{1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// unroll returns a range that goes on after the end of the field as a list, as in 5,6,0 for 5-7 and FRI-SUN. It returns other items
// as they are.
func (f field) unroll(item string) string {
	span, every, stepped := strings.Cut(item, "/")
	from, to, isRange := strings.Cut(span, "-")
	low, high, step := f.number(from), f.number(to), 1
	if stepped {
		step, _ = strconv.Atoi(every)
	}
	last := f.first + f.size - 1
	if f.size == 7 {
		last = 7 // Sunday again
	}
	switch {
	case low == 7 && f.size == 7 && !isRange:
		return strings.Replace(item, "7", "0-0", 1)
	case low < f.first, low > last, high < f.first, high > last, step < 1:
		return item
	case low <= high && high < f.first+f.size:
		return item
	case low > high:
		high += f.size
	}
	var values []string
	for n := low; n <= high; n += step {
		values = append(values, strconv.Itoa(f.first+(n-f.first)%f.size))
	}
	return strings.Join(values, ",")
}

// number returns the number of a word, or -1.
func (f field) number(word string) int {
	if i := slices.Index(f.names, strings.ToLower(word)); i >= 0 {
		return f.first + i
	}
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	return -1
}
