// Package period parses and formats durations in the syntax of directives: that of package time, with days and weeks. The runtime uses
// the same syntax, for example in overrides.
package period

import (
	"errors"
	"fmt"
	"math"
	"math/big"
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
		if d, err = addUnits(d, number, size); err != nil {
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

// addUnits adds a number of units to d.
func addUnits(d time.Duration, number string, unit time.Duration) (time.Duration, error) {
	exact, _ := new(big.Rat).SetString(number) // of digits and at most one point it always succeeds
	exact.Mul(exact, new(big.Rat).SetInt64(int64(unit)))
	sum := new(big.Int).Quo(exact.Num(), exact.Denom())
	if sum.Add(sum, big.NewInt(int64(d))); !sum.IsInt64() {
		return 0, errRange
	}
	return time.Duration(sum.Int64()), nil
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
	return days + noZeros.Replace(d.String())
}

var noZeros = strings.NewReplacer("h0m0s", "h", "m0s", "m")
