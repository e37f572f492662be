package ratelimit

import (
	"cmp"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	spelling "github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
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
	// Limit is how many permits a window has; 0 refuses everything. At most 1,000,000 for SlidingWindow and with Distinct,
	// 10,000,000 for TokenBucket and LeakyBucket, and 10^15 for the others.
	Limit int64
	// Per is the window, in whole microseconds, at most 3660 days. A rule has either Per or Cron.
	Per time.Duration
	// Cron gives the times at which a calendar window ends and the next begins: 5 or 6 fields, or @daily and the like.
	Cron string
	// TZ is the IANA name of Cron's time zone; "" is UTC.
	TZ string
	// Burst is the capacity of a TokenBucket; 0 is Limit. At most 10,000,000, and full within a hundred years.
	Burst int64
	// Prepay lets a call of a TokenBucket or LeakyBucket pass that takes more than is stored: the next one waits for it.
	Prepay bool
	// Warmup is the time in which a TokenBucket's rate ramps up after idling: from a third of it, as Guava's SmoothWarmingUp
	// does. Such a bucket has no burst, and its calls are prepaid. At most 24 hours.
	Warmup time.Duration
	// Slices is how many slices a SlidingCounter's window has; 0 is 60. At most 10,000.
	Slices int64
	// Distinct is the directive's template of the members that are counted instead of calls; where there is one, a request
	// names its Member. A member that is known costs nothing, and any other one permit. It is known from its first admission
	// in the window on: further ones do not prolong that, and where the first is given back it is known no more. It goes with
	// SlidingWindow and Calendar.
	Distinct string
	// Wait is how long a call waits for its permits instead of being refused at once; up to 3660 days. Only Take, Charge and
	// Begin look at it: what delays a request is Limiter.Wait. A call that a rule with Distinct counts does not wait for any of
	// its rules: who is known now need not be known later.
	Wait time.Duration
	// Queue is how many permits may be due to the calls that wait in a bucket, the new one's among them: where each costs 1,
	// how many calls may wait. 0 is any number. It goes with Wait, which requests do without, and not with Prepay or Warmup,
	// whose calls wait for the permits of earlier ones.
	Queue int64
	// Block is how long a subject is refused after a refusal, in whole microseconds. At most 30 days.
	Block time.Duration
	// Mode is what becomes of a refusal.
	Mode Mode
	// Scope is who shares the counts.
	Scope Scope
	// Refund is whether a call gives its permits back when it fails. Only Begin looks at it.
	Refund Refund
	// OnError is what to do while the store fails; the default is the limiter's policy.
	OnError FailurePolicy
	// Lease is how long permits may be taken ahead of time and handed out in this process; 0 is none. All rules of a method have
	// the same. It goes with SlidingWindow, FixedWindow, Calendar and TokenBucket in their plain form. At most a minute.
	Lease time.Duration
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

// Validate returns nil or a *RuleError. It is as strict as for a rule of a method, also where the rule is for requests, which
// need no Wait for their Queue.
func (r Rule) Validate() error {
	_, err := r.prepare("")
	return cmp.Or(err, r.checkQueue())
}

// Window names the rule's window, as it stands in keys: "1m", "fixed:1m", "bucket:1m", "cron:0 0 0 * * *:Asia/Shanghai".
func (r Rule) Window() string {
	window := period.Format(r.Per)
	if r.Cron != "" {
		window = "cron:" + strings.Join(strings.Fields(r.Cron), " ")
		if r.TZ != "" && r.TZ != "UTC" {
			window += ":" + r.TZ
		}
	}
	switch r.Algorithm {
	case FixedWindow:
		window = "fixed:" + window
	case TokenBucket:
		window = "bucket:" + window
		if r.Warmup > 0 {
			window += ":" + period.Format(r.Warmup)
		}
	case LeakyBucket:
		window = "leaky:" + window
	case SlidingCounter:
		window = fmt.Sprintf("counter:%s:%d", window, r.SliceCount())
	}
	if r.Distinct != "" {
		window = "distinct:" + window
	}
	return window
}

// StateKey returns the key under which Redis has the state of the rule for a subject's key in the calls of a generated method,
// pkg.Type.Method, or in requests if method is "". The limiter's prefix and a colon stand before it.
func (r Rule) StateKey(method, key string) string {
	return r.Name + ":{" + spelling.Subject(key) + "}:" + r.Window() + r.suffix(method)
}

// suffix sets the states of a method's rules apart where nothing else does: rules that are called after their method or its
// type, not by a name of their own, are told apart by their keys. Else a caller could pass somebody's address where a phone
// number is due, and use up what the address may.
func (r Rule) suffix(method string) string {
	typ := method[:max(0, strings.LastIndexByte(method, '.'))]
	named := func(of string) bool { return r.Name == of || strings.HasSuffix(r.Name, "."+of) } // behind the prefix of a wrapper
	if r.Key == "" || method == "" || !named(method) && !named(typ) {
		return ""
	}
	return ":" + r.Key
}

// prepared is a rule that is ready to be decided on.
type prepared struct {
	Rule
	numbers *decide.Rule
	block   *decide.Rule // nil without Block
	burst   int64
}

// prepare checks the rule and turns it into numbers. The suffix sets its states apart from those of other rules of its name
// and window.
func (r Rule) prepare(suffix string) (*prepared, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	numbers := decide.Rule{Kind: r.kind(), Per: r.Per.Microseconds(), Warmup: r.Warmup.Microseconds(), Slices: r.SliceCount()}
	if r.Cron != "" {
		var err error
		if numbers.Schedule, err = r.schedule(); err != nil {
			return nil, err
		}
	}
	numbers.Identify(r.Name, r.Window()+suffix)
	p := &prepared{Rule: r, numbers: &numbers, burst: r.capacity()}
	if r.Block > 0 {
		p.block = &decide.Rule{Kind: decide.Block, Per: r.Block.Microseconds()}
		p.block.Identify(r.Name, r.Window()+suffix+":block")
	}
	return p, nil
}

func (r Rule) kind() decide.Kind {
	switch {
	case r.Distinct != "" && r.Cron != "":
		return decide.CalendarMembers
	case r.Distinct != "":
		return decide.Members
	case r.Cron != "":
		return decide.Calendar
	case r.Warmup > 0:
		return decide.Warm
	case r.Prepay:
		return decide.Prepaid
	}
	switch r.Algorithm {
	case FixedWindow:
		return decide.Fixed
	case TokenBucket, LeakyBucket:
		return decide.Bucket
	case SlidingCounter:
		return decide.Counter
	default:
		return decide.Log
	}
}

// capacity is how many permits a bucket holds.
func (r Rule) capacity() int64 {
	switch {
	case r.Algorithm == LeakyBucket && r.Prepay:
		return 0
	case r.Algorithm == LeakyBucket:
		return 1
	case r.Burst > 0:
		return r.Burst
	default:
		return r.Limit
	}
}

// SliceCount is how many slices the window of a SlidingCounter has.
func (r Rule) SliceCount() int64 {
	if r.Slices == 0 {
		return defaultSlices
	}
	return r.Slices
}

// delay returns for how many microseconds the rule may delay a call that waits, at a limit: no longer than the permits of its
// queue take to leave. As places are, that is rounded up; where a bucket holds one permit, each place is counted from the one
// before it.
func (r *Rule) delay(longest time.Duration, limit int64) int64 {
	wait := longest.Microseconds()
	if r.Queue > 0 && limit > 0 {
		per := r.Per.Microseconds()
		if r.Algorithm == LeakyBucket || r.Burst == 1 {
			per += (limit - per%limit) % limit
		}
		high, low := bits.Mul64(uint64(r.Queue), uint64(per))
		low, carry := bits.Add64(low, uint64(limit-1), 0)
		if high += carry; high < uint64(limit) { // else it takes longer than there are numbers for
			queue, _ := bits.Div64(high, low, uint64(limit))
			wait = int64(min(uint64(wait), queue))
		}
	}
	return wait
}

var cronParser = cron.NewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func (r Rule) schedule() (*decide.Schedule, error) {
	zone, err := time.LoadLocation(r.TZ)
	if err != nil || r.TZ == "Local" {
		return nil, r.wrong("tz", "unknown time zone %q; expected an IANA name such as Europe/Berlin", r.TZ)
	}
	if strings.HasPrefix(r.Cron, "TZ=") || strings.HasPrefix(r.Cron, "CRON_TZ=") {
		return nil, r.wrong("cron", "found a time zone; write it as tz=")
	}
	if strings.HasPrefix(r.Cron, "@every") {
		return nil, r.wrong("cron", "@every is no calendar; write per=")
	}
	switch fields := len(strings.Fields(r.Cron)); {
	case fields == 7:
		return nil, r.wrong("cron", "found 7 fields; a year is not supported, expected 5 fields, or 6 with seconds")
	case fields == 1 && !strings.HasPrefix(r.Cron, "@"):
		return nil, r.wrong("cron", "found %q; expected 5 fields, 6 with seconds, or a word such as @daily", r.Cron)
	case !strings.HasPrefix(r.Cron, "@") && fields != 5 && fields != 6:
		return nil, r.wrong("cron", "found %d fields; expected 5, or 6 with seconds", fields)
	}
	schedule, err := cronParser.Parse(r.Cron)
	if err != nil {
		return nil, r.wrong("cron", "%s", cronReason(err.Error()))
	}
	spec := schedule.(*cron.SpecSchedule)
	if spec.Next(time.Unix(0, 0).UTC()).IsZero() {
		return nil, r.wrong("cron", "%q never comes", r.Cron)
	}
	const allHours = 1<<24 - 1
	return decide.NewSchedule(spec.Next, spec.Hour&allHours == allHours, zone), nil
}

// cronReason says in other words what the parser of cron expressions says of something that is no number.
func cronReason(text string) string {
	if _, word, ok := strings.Cut(text, "failed to parse int from "); ok {
		word, _, _ = strings.Cut(word, ": ")
		return fmt.Sprintf("found %q; expected numbers, *, or the first three letters of a month or a day of the week", word)
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// PerSecond returns a sliding window of limit permits a second. Give it a Name: rules of one name and window share their
// counts.
func PerSecond(limit int64) Rule { return Rule{Limit: limit, Per: time.Second} }

// PerMinute returns a sliding window of limit permits a minute. Give it a Name, as for [PerSecond].
func PerMinute(limit int64) Rule { return Rule{Limit: limit, Per: time.Minute} }

// PerHour returns a sliding window of limit permits an hour. Give it a Name, as for [PerSecond].
func PerHour(limit int64) Rule { return Rule{Limit: limit, Per: time.Hour} }

// PerDay returns a sliding window of limit permits in 24 hours. Give it a Name, as for [PerSecond].
func PerDay(limit int64) Rule { return Rule{Limit: limit, Per: 24 * time.Hour} }
