// Package period parses and formats durations in the syntax of directives: that of package time, with days and weeks. The runtime uses
// the same syntax, for example in overrides.
package period

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

var units = map[string]time.Duration{
	"ns": time.Nanosecond,
	"us": time.Microsecond,
	"µs": time.Microsecond, // U+00B5, the micro sign
	"μs": time.Microsecond, // U+03BC, the letter mu
	"ms": time.Millisecond,
	"s":  time.Second,
	"m":  time.Minute,
	"h":  time.Hour,
	"d":  day,
	"w":  7 * day,
}

// Want describes a valid duration, for error messages.
const Want = "a duration above zero, such as 90s, 24h or 1d"

var errRange = errors.New("out of range")

// Parse parses a duration. Errors call it name, and are about text[at:]. Parse drops fractions of a nanosecond.
func Parse(name, text string) (d time.Duration, at int, err error) {
	if text == "" {
		return 0, 0, fmt.Errorf("%s is empty; expected %s", name, Want)
	}
	for at < len(text) {
		number, unit := cut(text[at:])
		size, known := units[unit]
		switch {
		case strings.Trim(number, ".") == "":
			return 0, at, fmt.Errorf("%s is %q; expected %s", name, text, Want)
		case unit == "":
			return 0, at, fmt.Errorf("%s is %q without a unit; expected %s", name, text, Want)
		case !known && strings.TrimSpace(unit) != unit:
			return 0, at + len(number), fmt.Errorf("unexpected space in %q; expected %s", text, Want)
		case !known:
			return 0, at + len(number), fmt.Errorf("unknown unit %q in %q; expected ns, us, ms, s, m, h, d or w", unit, text)
		}
		if d, err = add(d, number, size); err != nil {
			return 0, 0, fmt.Errorf("%s is %q, %w; expected at most %s", name, text, err, Format(math.MaxInt64/day*day))
		}
		at += len(number) + len(unit)
	}
	if d == 0 {
		return 0, 0, fmt.Errorf("%s is %q; expected %s", name, text, Want)
	}
	return d, 0, nil
}

// cut returns the number at the beginning of a text, which may have a decimal point, and the unit, which ends before the next number.
func cut(text string) (number, unit string) {
	end := digits(text)
	if end < len(text) && text[end] == '.' {
		end += 1 + digits(text[end+1:])
	}
	unit = text[end:]
	if next := strings.IndexAny(unit, "0123456789."); next >= 0 {
		unit = unit[:next]
	}
	return text[:end], unit
}

func digits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }

// add adds a number of units to d.
func add(d time.Duration, number string, unit time.Duration) (time.Duration, error) {
	whole, fraction, _ := strings.Cut(number, ".")
	n, err := strconv.ParseUint("0"+whole, 10, 64)
	high, sum := bits.Mul64(n, uint64(unit))
	if err != nil || high > 0 || sum > uint64(math.MaxInt64-d) {
		return 0, errRange
	}
	sum += uint64(d) + part(fraction, uint64(unit)) // cannot overflow a uint64, as the part is less than a week
	if sum > math.MaxInt64 {
		return 0, errRange
	}
	return time.Duration(sum), nil
}

// part returns the whole nanoseconds of a fraction of a unit. It ignores digits after the 18th, which are worth less than a nanosecond.
func part(fraction string, unit uint64) uint64 {
	fraction = fraction[:min(len(fraction), 18)]
	n, scale := uint64(0), uint64(1)
	for _, c := range []byte(fraction) {
		n, scale = 10*n+uint64(c-'0'), 10*scale
	}
	high, low := bits.Mul64(n, unit)
	quotient, _ := bits.Div64(high, low, scale)
	return quotient
}

// Format formats a duration with whole days, such as 1d12h, and without the zero units that time.Duration prints.
func Format(d time.Duration) string {
	var days string
	if d >= day {
		days = strconv.FormatInt(int64(d/day), 10) + "d"
		if d %= day; d == 0 {
			return days
		}
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return days + s
}
