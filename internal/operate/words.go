package operate

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
)

// Arguments says what an override changes, as arguments of a directive: "factor=2 mode=shadow".
func Arguments(v *fleet.Values) string {
	var texts []string
	for name, value := range v.Arguments() {
		texts = append(texts, fmt.Sprint(name, "=", value))
	}
	return strings.Join(texts, " ")
}

// Whose says for whom a setting of a rule and a key is: "the rule", "ann", "shop.*", "203.0.113.0/24 of shop.*".
func Whose(rule, subject string) string {
	whose := key.Shown(subject)
	switch {
	case !fleet.IsGlob(rule):
		return cmp.Or(whose, "the rule")
	case whose == "":
		return rule
	}
	return whose + " of " + rule
}

// Values says what a setting does: "blocked", "paused", "limit=500". That of nil is what holds without one: "not blocked".
func Values(kind fleet.Kind, v *fleet.Values) string {
	switch {
	case v == nil && kind == fleet.Override:
		return "no override"
	case v == nil:
		return "not " + Values(kind, new(fleet.Values))
	case kind == fleet.Block:
		return "blocked"
	case kind == fleet.Pause:
		return "paused"
	}
	return Arguments(v)
}

// Duration is a duration as in directives, true to the microsecond: "59m55.895123s". That of 0 is "".
func Duration(d time.Duration) string {
	if d = d.Round(time.Microsecond); d == 0 {
		return ""
	}
	return period.Format(d)
}

// Span is a duration of at most two units, as forms take them: "3m20s".
func Span(d time.Duration) string {
	for _, size := range []struct{ least, rest time.Duration }{
		{24 * time.Hour, time.Hour}, {time.Hour, time.Minute}, {time.Second, time.Second}, {time.Millisecond, time.Millisecond},
	} {
		if d >= size.least {
			return period.Format(d.Truncate(size.rest))
		}
	}
	return period.Format(max(0, d.Truncate(10*time.Microsecond)))
}

// Ago is an age: "3m20s ago".
func Ago(d time.Duration) string {
	if d < time.Second {
		return "just now"
	}
	return Span(d) + " ago"
}

// Number is a number with commas: "12,000".
func Number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Count is a number with its noun: "1 rule", "12,000 rules".
func Count[N int | int64](n N, noun string) string {
	return Number(int64(n)) + " " + period.Noun(int64(n), noun)
}

// Bytes is a number of bytes: "1.5 MB".
func Bytes(n int64) string {
	for _, unit := range []struct {
		bits int
		name string
	}{{30, "GB"}, {20, "MB"}} {
		if n >= 1<<unit.bits {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(int64(1)<<unit.bits), unit.name)
		}
	}
	return fmt.Sprintf("%.1f kB", float64(n)/(1<<10))
}

// Ahead says how far a clock is ahead of another, or behind: "3s ahead of".
func Ahead(ahead time.Duration) string {
	if ahead < 0 {
		return Duration(-ahead) + " behind"
	}
	return Duration(ahead) + " ahead of"
}

// SetBy says who set something, and when: "set by kim at 2026-11-29 14:02:11 CET". Both may be unknown.
func SetBy(by string, at time.Time) string {
	text := "set by " + cmp.Or(by, "a program")
	if at.IsZero() {
		return text
	}
	return text + " at " + LocalTime(at)
}

// Because adds a reason to a sentence.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// word is a text as one word of a shell's command: 'a b'.
func word(text string) string {
	isPlain := func(c rune) bool {
		return unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("-_./:@%+=,", c)
	}
	if strings.TrimFunc(text, isPlain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// LocalTime is a time in this machine's time zone. That of the zero time is "".
func LocalTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format("2006-01-02 15:04:05 MST")
}
