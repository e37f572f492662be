// Package farside reads how long somebody else's service asks a program to be quiet: in the fields of an HTTP response, in the metadata of a gRPC
// call, or in an error of a client library. It imports neither net/http nor gRPC: a program that uses none of them links none of them.
package farside

import (
	"cmp"
	"iter"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Longest bounds the delay that a far side asks for.
const Longest = 24 * time.Hour

// maxValue bounds a value that is shown, in bytes.
const maxValue = 100

// Asked is what a far side asks for. For example, 429 with "Retry-After: 30" is For 30s, By "Retry-After: 30".
type Asked struct {
	For time.Duration // 0 to Longest; 0 is no pause
	By  string        // what says so: the name of a field and its value, escaped and cut; "" if nothing that can be read does
	Odd []Odd         // what could not be read
}

// Odd is a field that could not be read.
type Odd struct{ Name, Value string }

// Fields returns the values of a field by its name, as http.Header.Values does, and metadata.MD.Get.
type Fields func(name string) []string

// ByFields returns what a response asks for, at the time now. All fields count after the statuses 429 and 503, and after the status 0, which says
// that the status is not known. After others of 400 and more, only those that say how long to wait do. With remaining, what is left counts after
// every status. If a field says how long to wait, what is left does not count: draft-ietf-httpapi-ratelimit-headers-11, section 7.
func ByFields(status int, fields Fields, now time.Time, remaining bool) Asked {
	r := reader{fields: fields, now: clock(fields, now)}
	said := (status == 0 || status >= 400) && r.wait()
	if !said && (remaining || status == 0 || status == 429 || status == 503) {
		r.left()
	}
	return r.Asked
}

// reader reads the fields of one response.
type reader struct {
	Asked
	fields Fields
	now    time.Time // by the far side's clock
}

// clock returns the time by the clock of the far side: what its Date says, and how long a cache has kept the response.
func clock(fields Fields, now time.Time) time.Time {
	date, err := httpDate(first(fields, "Date"))
	if err != nil {
		return now
	}
	age, _ := number(first(fields, "Age"))
	return date.Add(duration(age, time.Second))
}

// first returns the first value of a field, or "".
func first(fields Fields, name string) string {
	if all := fields(name); len(all) > 0 {
		return strings.Trim(all[0], " \t")
	}
	return ""
}

// wait reads the fields that say how long to wait. It reports whether one does.
func (r *reader) wait() bool {
	if text := first(r.fields, "Grpc-Retry-Pushback-Ms"); !strings.HasPrefix(text, "-") && // which says not to try again
		r.read("Grpc-Retry-Pushback-Ms", text, milliseconds) {
		return true
	}
	for _, name := range [...]string{"Retry-After-Ms", "X-Amz-Retry-After"} {
		if r.read(name, first(r.fields, name), milliseconds) {
			return true
		}
	}
	return r.read("Retry-After", first(r.fields, "Retry-After"), r.delay)
}

// pairs are the fields for what is left, and for when more is there.
var pairs = [...]struct{ left, reset string }{
	{"RateLimit-Remaining", "RateLimit-Reset"},
	{"X-RateLimit-Remaining", "X-RateLimit-Reset"},
	{"X-RateLimit-Remaining-Requests", "X-RateLimit-Reset-Requests"},
	{"X-RateLimit-Requests-Remaining", "X-RateLimit-Requests-Reset"},
	{"X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"},
	{"Anthropic-RateLimit-Requests-Remaining", "Anthropic-RateLimit-Requests-Reset"},
}

// left reads the fields that say that nothing is left, and when more is there. Of several the longest counts. What a cache has kept does not
// count: section 7.3 of the draft.
func (r *reader) left() {
	if age, _ := number(first(r.fields, "Age")); age > 0 {
		return
	}
	r.policies(strings.Join(r.fields("RateLimit"), ","))
	for _, p := range pairs {
		text := first(r.fields, p.left)
		if text == "" || strings.HasPrefix(text, "-") { // no limit
			continue
		}
		switch n, ok := number(text[:end(text, ";,")]); {
		case !ok:
			r.odd(p.left, text)
		case n < 1:
			r.read(p.reset, first(r.fields, p.reset), r.delay)
		}
	}
}

// policies reads the field RateLimit of the drafts. Of the policies of which nothing is left, the longest time counts. A field that is malformed is
// ignored: section 7 of the draft.
func (r *reader) policies(text string) {
	if text == "" {
		return
	}
	between := byte(',')
	if strings.Contains(text, "remaining=") { // up to draft 07 the field is one policy: limit=10, remaining=0, reset=5
		text, between = strings.ReplaceAll(text, ",", ";"), 0
	}
	longest, unreadable := -1.0, false
	for policy := range Split(text, between) {
		left, reset, later := "", "", ""
		for parameter := range Split(policy, ';') {
			switch name, value, _ := strings.Cut(strings.Trim(parameter, " \t"), "="); name {
			case "r", "a", "remaining": // a and w are of the draft after 11
				left = value
			case "t", "reset":
				reset = value
			case "w":
				later = value
			}
		}
		reset = cmp.Or(reset, later)
		n, ok := number(left)
		seconds, isTime := number(reset)
		unreadable = unreadable || !ok || reset != "" && !isTime
		if n < 1 && isTime {
			longest = max(longest, seconds)
		}
	}
	if unreadable {
		r.odd("RateLimit", unnamed(text))
	} else if longest >= 0 {
		r.ask("RateLimit", "t="+strconv.FormatFloat(longest, 'f', -1, 64), duration(longest, time.Second))
	}
}

// quoted is a String of RFC 9651, or the beginning of one that does not end.
var quoted = regexp.MustCompile(`"(\\.|[^"\\])*("|\\?$)`)

// unnamed returns a list of policies without their names, which may say who the caller is.
func unnamed(text string) string { return quoted.ReplaceAllString(text, `""`) }

// Split returns the parts of a text between which a byte is, outside of quotes.
func Split(text string, between byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		begin, quoted := 0, false
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case c == '"':
				quoted = !quoted
			case c == '\\' && quoted:
				i++
			case c == between && !quoted:
				if !yield(text[begin:i]) {
					return
				}
				begin = i + 1
			}
		}
		yield(text[begin:])
	}
}

// read reads a field. It reports whether the field is there and can be read.
func (r *reader) read(name, text string, parse func(string) (time.Duration, bool)) bool {
	if text == "" {
		return false
	}
	d, ok := parse(text)
	if !ok {
		r.odd(name, text)
		return false
	}
	r.ask(name, text, d)
	return true
}

func (a *Asked) odd(name, text string) {
	a.Odd = append(a.Odd, Odd{name, printable.Text(text, maxValue)})
}

// ask notes that something asks for d. The longest counts.
func (a *Asked) ask(name, text string, d time.Duration) {
	if d = min(max(0, d), Longest); d > a.For || a.By == "" {
		a.For, a.By = d, name+": "+printable.Text(text, maxValue)
	}
}

// Add adds what another asks for. The longest counts.
func (a *Asked) Add(other Asked) {
	a.Odd = append(a.Odd, other.Odd...)
	if other.For > a.For || a.By == "" {
		a.For, a.By = other.For, other.By
	}
}

// Numbers from these on are times, since 1970: a delay of a billion seconds is none.
const (
	epochSeconds      = 1e9  // September 2001
	epochMilliseconds = 1e11 // March 1973
	tooLarge          = 1e14 // the year 5138
)

// delay reads a number of seconds, a time in seconds or milliseconds since 1970, a duration such as 6m0s, or a date: as RFC 9110, section 5.6.7, or
// RFC 3339 has it. The duration of what is past is not positive.
func (r *reader) delay(text string) (time.Duration, bool) {
	if n, ok := number(text[:end(text, ";")]); ok {
		switch {
		case n >= tooLarge:
			return 0, false
		case n >= epochMilliseconds:
			return time.UnixMilli(int64(n)).Sub(r.now), true
		case n >= epochSeconds:
			seconds, fraction := math.Modf(n)
			return time.Unix(int64(seconds), int64(fraction*1e9)).Sub(r.now), true
		}
		return duration(n, time.Second), true
	}
	if d, err := time.ParseDuration(text); err == nil && text[0] != '-' && text[0] != '+' {
		return d, true
	}
	at, err := httpDate(text)
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if err != nil {
			at, err = time.Parse(layout, text)
		}
	}
	return at.Sub(r.now), err == nil
}

// httpDate reads a date in one of the three forms of HTTP.
func httpDate(text string) (at time.Time, err error) {
	for _, layout := range [...]string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if at, err = time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return at, err
}

func milliseconds(text string) (time.Duration, bool) {
	n, ok := number(text)
	return duration(n, time.Millisecond), ok
}

// number reads digits, and perhaps a fraction.
func number(text string) (float64, bool) {
	text = strings.Trim(text, " \t")
	if text == "" || text[0] == '.' || strings.Trim(text, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// duration returns n units, or Longest if that is shorter.
func duration(n float64, unit time.Duration) time.Duration {
	return time.Duration(min(math.Ceil(n*float64(unit)), float64(Longest)))
}

// end returns the index of the first of the bytes in a text, or the text's length.
func end(text, bytes string) int {
	if i := strings.IndexAny(text, bytes); i >= 0 {
		return i
	}
	return len(text)
}
