package ratelimit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

var cronParser = cron.NewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// parseCron parses a cron expression. Unlike the parser's own language, it has ranges that go on after the end, such as FRI-MON and 22-2,
// and 7 for Sunday.
func parseCron(expr string) (*cron.SpecSchedule, error) {
	fields := strings.Fields(expr)
	for i := range fields {
		if len(fields) == 1 { // a word such as @daily
			break
		}
		field := cronFields[i+len(cronFields)-len(fields)]
		items := strings.Split(fields[i], ",")
		for j, item := range items {
			if reason := unsupported(item, field); reason != "" {
				return nil, fmt.Errorf("found %q; %s", item, reason)
			}
			items[j] = field.unrolled(item)
		}
		fields[i] = strings.Join(items, ",")
	}
	schedule, err := cronParser.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, cronError(err.Error())
	}
	return schedule.(*cron.SpecSchedule), nil
}

// cronError says what is wrong with a cron expression. If a number is malformed, the parser's own text names a Go function.
func cronError(text string) error {
	if _, word, ok := strings.Cut(text, "failed to parse int from "); ok {
		word, _, _ = strings.Cut(word, ": ")
		return fmt.Errorf("found %q; expected numbers, *, or the first three letters of a month or a day of the week", word)
	}
	return fmt.Errorf("%s%s", strings.ToLower(text[:1]), text[1:])
}

// unsupported says what to write instead of the extensions of other schedulers, or returns "".
func unsupported(item string, f cronField) string {
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

// cronField is the range of the numbers in a field, and their names.
type cronField struct {
	first, size int
	names       []string
}

// cronFields are the fields in their order. The first may be absent.
var cronFields = []cronField{
	{0, 60, nil}, {0, 60, nil}, {0, 24, nil}, {1, 31, nil},
	{1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// unrolled returns a range that goes on after the end of the field as a list, as in 5,6,0 for 5-7 and FRI-SUN. It returns other items
// as they are.
func (f cronField) unrolled(item string) string {
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
func (f cronField) number(word string) int {
	if i := slices.Index(f.names, strings.ToLower(word)); i >= 0 {
		return f.first + i
	}
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	return -1
}

// farthest is how far ahead the cron package looks for the next fire time.
const farthest = 5 * 366 * 24 * time.Hour

// Boundaries returns the next n times after now at which the rule's calendar windows end, in the rule's time zone. It returns fewer if five
// years pass between two of them. It returns none for a rule without Cron, because its windows depend on the calls. The error is a *RuleError.
func (r Rule) Boundaries(now time.Time, n int) ([]time.Time, error) {
	p, err := r.prepare("")
	if err != nil || r.Cron == "" {
		return nil, err
	}
	var ends []time.Time
	for last := now; len(ends) < n; {
		_, stop := p.numbers.Schedule.Window(last.UnixMicro())
		end := time.UnixMicro(stop).In(p.numbers.Schedule.Zone)
		if end.Sub(last) > farthest {
			break
		}
		ends, last = append(ends, end), end
	}
	return ends, nil
}
