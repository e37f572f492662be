package runtime

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/robfig/cron/v3"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// Rule is one limit: plain data with the fields of the rule directive. The zero values are the directive's defaults.
type Rule struct {
	// Name says what the rule counts: rules of one Name and one window share their counts. In generated code it is the
	// directive's name, or pkg.Type.Method.
	Name string
	// Key is the directive's key template as written. Where there is one, an empty subject is a [KeyError]; where there is
	// none, it stands for everybody.
	Key string
	// Algorithm is SlidingWindow by default, Calendar if there is a Cron.
	Algorithm Algorithm
	// Limit is how many permits a window has; 0 refuses everything. At most 1,000,000 for SlidingWindow, 10,000,000 for
	// TokenBucket, and 10^15 for the others.
	Limit int64
	// Per is the window, in whole microseconds, at most 3660 days. A rule has either Per or Cron.
	Per time.Duration
	// Cron gives the times at which a calendar window ends and the next begins: 5 or 6 fields, or @daily and the like.
	Cron string
	// TZ is the IANA name of Cron's time zone; "" is UTC.
	TZ string
	// Burst is the capacity of a TokenBucket; 0 is Limit.
	Burst int64
	// Message is what a caller is told on a refusal; "" is "Too many requests.".
	Message string
}

// RuleError says what is wrong with a [Rule].
type RuleError struct {
	Rule     string // its name
	Argument string // the argument of the directive that is wrong, such as "limit" or "per"
	Reason   string
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("rule %s: %s: %s", strconv.Quote(e.Rule), e.Argument, e.Reason)
}

// Validate returns nil or a *RuleError.
func (r Rule) Validate() error {
	_, err := r.prepare("")
	return err
}

// Window names the rule's window, as it stands in keys: "1m", "fixed:1m", "bucket:1m", "cron:0 0 0 * * *:Asia/Shanghai".
func (r Rule) Window() string {
	if r.Cron != "" {
		window := "cron:" + strings.Join(strings.Fields(r.Cron), " ")
		if r.TZ != "" && r.TZ != "UTC" {
			window += ":" + r.TZ
		}
		return window
	}
	switch r.Algorithm {
	case FixedWindow:
		return "fixed:" + formatPeriod(r.Per)
	case TokenBucket:
		return "bucket:" + formatPeriod(r.Per)
	default:
		return formatPeriod(r.Per)
	}
}

// formatPeriod writes whole days as such, and leaves out the zero units that time.Duration prints.
func formatPeriod(d time.Duration) string {
	const day = 24 * time.Hour
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

// suffix sets the states of a method's rules apart where nothing else does: rules that are called after their method or its
// type, not by a name of their own, are told apart by their keys. Else a caller could pass somebody's address where a phone
// number is due, and use up what the address may.
func (r Rule) suffix(method string) string {
	if r.Key == "" || r.Name != method && !strings.HasPrefix(method, r.Name+".") {
		return ""
	}
	return ":" + r.Key
}

// prepared is a rule that is ready to be decided on.
type prepared struct {
	Rule
	numbers *decide.Rule
	burst   int64
}

const (
	maxName         = 256
	maxPer          = 3660 * 24 * time.Hour
	maxLimit        = 1_000_000_000_000_000
	maxSlidingLimit = 1_000_000
	maxBucketLimit  = 10_000_000
	maxRefill       = 36600 * 24 * time.Hour // how long a bucket may take from empty to full
)

// prepare checks the rule and turns it into numbers. The suffix sets its states apart from those of other rules of its name
// and window.
func (r Rule) prepare(suffix string) (*prepared, error) {
	p := &prepared{Rule: r, burst: r.Limit}
	numbers := decide.Rule{Per: r.Per.Microseconds()}
	if argument, reason := r.wrongName(); argument != "" {
		return nil, r.wrong(argument, "%s", reason)
	}
	if err := r.checkWindow(); err != nil {
		return nil, err
	}
	switch {
	case r.Cron != "":
		schedule, err := r.schedule()
		if err != nil {
			return nil, err
		}
		numbers.Kind, numbers.Schedule = decide.Calendar, schedule
	case r.Algorithm == SlidingWindow:
		numbers.Kind = decide.Log
	case r.Algorithm == FixedWindow:
		numbers.Kind = decide.Fixed
	case r.Algorithm == TokenBucket:
		numbers.Kind = decide.Bucket
	default:
		return nil, r.wrong("algorithm", "%s is not supported yet", r.Algorithm)
	}
	if err := r.checkLimit(); err != nil {
		return nil, err
	}
	if r.Burst > 0 {
		p.burst = r.Burst
	}
	numbers.Identify(r.Name, r.Window()+suffix)
	p.numbers = &numbers
	return p, nil
}

func (r Rule) wrong(argument, format string, args ...any) error {
	return &RuleError{Rule: r.Name, Argument: argument, Reason: fmt.Sprintf(format, args...)}
}

// wrongName guards the keys: a name with a brace would move the hash tag.
func (r Rule) wrongName() (argument, reason string) {
	if len(r.Name) > maxName {
		return "name", fmt.Sprintf("has %d bytes, at most %d are allowed", len(r.Name), maxName)
	}
	for _, c := range r.Name {
		if strings.ContainsRune("{}%\"'`", c) || unicode.IsSpace(c) || !unicode.IsPrint(c) {
			return "name", fmt.Sprintf("found %q; letters, digits and . _ - / : are allowed", c)
		}
	}
	return "", ""
}

func (r Rule) checkWindow() error {
	switch {
	case r.Per != 0 && r.Cron != "":
		return r.wrong("cron", "a rule has either per or cron; found both")
	case r.Cron != "" && r.Algorithm != SlidingWindow && r.Algorithm != Calendar:
		return r.wrong("algorithm", "%s does not go with cron, whose windows are the calendar's", r.Algorithm)
	case r.Cron != "":
		return nil
	case r.Algorithm == Calendar:
		return r.wrong("algorithm", "calendar needs cron, which says when its windows end")
	case r.TZ != "":
		return r.wrong("tz", "a time zone goes with cron; found none")
	case r.Per == 0:
		return r.wrong("per", "a rule has either per or cron; found neither")
	case r.Per < 0 || r.Per > maxPer || r.Per%time.Microsecond != 0:
		return r.wrong("per", "found %s; expected whole microseconds, up to %s", r.Per, formatPeriod(maxPer))
	}
	return nil
}

func (r Rule) checkLimit() error {
	limit, what := int64(maxLimit), "a rule"
	switch {
	case r.Cron == "" && r.Algorithm == SlidingWindow:
		limit, what = maxSlidingLimit, "a sliding-window, which keeps the time of each permit"
	case r.Algorithm == TokenBucket:
		limit, what = maxBucketLimit, "a token-bucket"
	}
	if r.Limit < 0 || r.Limit > limit {
		return r.wrong("limit", "found %d; expected 0 to %d for %s", r.Limit, limit, what)
	}
	if r.Burst == 0 {
		return nil
	}
	if r.Algorithm != TokenBucket {
		return r.wrong("burst", "only a token-bucket has a burst; this rule is a %s", r.kind())
	}
	if r.Burst < 0 || r.Burst > maxBucketLimit {
		return r.wrong("burst", "found %d; expected 1 to %d", r.Burst, maxBucketLimit)
	}
	if r.Limit > 0 && float64(r.Burst)/float64(r.Limit)*float64(r.Per) > float64(maxRefill) {
		return r.wrong("burst", "found %d, which takes over a hundred years to fill at %d per %s", r.Burst, r.Limit, formatPeriod(r.Per))
	}
	return nil
}

func (r Rule) kind() Algorithm {
	if r.Cron != "" {
		return Calendar
	}
	return r.Algorithm
}

var cronParser = cron.NewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func (r Rule) schedule() (*decide.Schedule, error) {
	zone, err := time.LoadLocation(r.TZ)
	if err != nil || r.TZ == "Local" {
		return nil, r.wrong("tz", "unknown time zone %q; expected an IANA name such as Europe/Berlin", r.TZ)
	}
	if fields := len(strings.Fields(r.Cron)); fields == 7 {
		return nil, r.wrong("cron", "found 7 fields; a year is not supported, expected 5 fields, or 6 with seconds")
	}
	if strings.HasPrefix(r.Cron, "TZ=") || strings.HasPrefix(r.Cron, "CRON_TZ=") {
		return nil, r.wrong("cron", "found a time zone; write it as tz=")
	}
	if strings.HasPrefix(r.Cron, "@every") {
		return nil, r.wrong("cron", "@every is no calendar; write per=")
	}
	schedule, err := cronParser.Parse(r.Cron)
	if err != nil {
		return nil, r.wrong("cron", "%s", strings.ToLower(err.Error()))
	}
	spec := schedule.(*cron.SpecSchedule)
	if spec.Next(time.Unix(0, 0).UTC()).IsZero() {
		return nil, r.wrong("cron", "%q never comes", r.Cron)
	}
	const allHours = 1<<24 - 1
	return decide.NewSchedule(spec.Next, spec.Hour&allHours == allHours, zone), nil
}

// PerSecond returns a sliding window of limit permits a second.
func PerSecond(limit int64) Rule { return Rule{Limit: limit, Per: time.Second} }

// PerMinute returns a sliding window of limit permits a minute.
func PerMinute(limit int64) Rule { return Rule{Limit: limit, Per: time.Minute} }

// PerHour returns a sliding window of limit permits an hour.
func PerHour(limit int64) Rule { return Rule{Limit: limit, Per: time.Hour} }

// PerDay returns a sliding window of limit permits in 24 hours.
func PerDay(limit int64) Rule { return Rule{Limit: limit, Per: 24 * time.Hour} }
