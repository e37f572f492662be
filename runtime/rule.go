package ratelimit

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/period"
)

// Rule is one limit: plain data with the fields of the rule directive. The zero values are the directive's defaults. For example, a rule with
// Name "codes", Key "{phone}", Limit 10 and Per time.Hour admits ten calls for each phone number within any hour. As JSON, durations are
// in nanoseconds, and an Algorithm and the like are numbers.
type Rule struct {
	// Name identifies the counts: rules with the same Name and window share them. At most 256 bytes, without spaces and without
	// {}%:*"'`. In generated code it is the directive's name, or else pkg.Type.Method, or pkg.Type for a rule on a type.
	Name string `json:"name"`
	// Key is the directive's key template as written. This package does not evaluate it. If the rule has one, a request with an empty Key
	// fails with a [KeyError]. If not, an empty Key in a request means everybody. With "{phone}" and a Limit of 10, each phone number has ten
	// permits, and without a Key all have ten together.
	Key string `json:"key,omitzero"`
	// Algorithm is SlidingWindow by default, Calendar if there is a Cron or an Every. With a Limit of 10, SlidingWindow admits ten permits in any
	// span of Per. FixedWindow may admit ten at the end of a window, and ten more at the start of the next.
	Algorithm Algorithm `json:"algorithm,omitzero"`
	// Limit is how many permits a window has; 0 refuses everything. At most 10^9 for SlidingWindow, 1,000,000 with Distinct, 10,000,000 for
	// TokenBucket and LeakyBucket, 1000 for Concurrency, and 10^15 for the others. With a Limit of 10, the eleventh permit of a window is
	// refused.
	Limit int64 `json:"limit"`
	// Computed says that each call brings a limit of its own, so Limit is 0 and says nothing. In generated code it is set if the
	// directive's limit is an expression that depends on the call, such as limit="plan(ctx).Limit". [Limiter.Allow], [Limiter.Wait] and
	// [Limiter.Reserve] do not take such a rule: a program without generated code gives each request a Rule with the Limit of the call.
	// [Limiter.Peek] tells what is used: after a call under a limit of 100 and one under a limit of 500, each of one permit, the Quota has the Limit
	// 0 and Remaining -2. Each call counts as a rule with its limit does: a SlidingWindow counts a call under 10,000 or less by permits, and one
	// under more by Amounts. So after a call under 500, one under 20,000 finds no permit used. A Quota has the more of the two.
	Computed bool `json:"computed,omitzero"`
	// Amounts makes a SlidingWindow keep one entry for each call instead of one for each permit. It is for large costs, such as tokens of a
	// language model: a limit of 1,000,000 that 100 calls use takes about 2 kB instead of 10 MB on Redis. A SlidingWindow with a Limit
	// above 10,000 always does so, also if the limit comes with the call. The two kinds of counts have different windows, "1m" and "amounts:1m", so a change starts anew. An
	// amount is exact while a window has fewer than 2,048 calls. With more, RetryAfter is at most a 2,048th of Per too long. In generated
	// code it is set if the directive has cost= and the limit is an expression.
	Amounts bool `json:"amounts,omitzero"`
	// Per is the window, in whole microseconds, at most 3660 days. A rule has one of Per, Cron and Every. With a Per of a minute, a permit that was
	// taken at 12:00:05 is back at 12:01:05, if the Algorithm is SlidingWindow. For
	// Concurrency it is how long permits outlive a process that died: at least 3 s, and a minute if it is 0.
	Per time.Duration `json:"per,omitzero"`
	// Cron gives the times at which a calendar window ends and the next begins: 5 or 6 fields, or @daily and the like. 0 and 7 are Sunday, and
	// a range may go on after the end, as in FRI-MON and 22-2. With "0 0 0 * * *" a window is a day from midnight to midnight.
	Cron string `json:"cron,omitzero"`
	// Every gives the length of calendar windows that begin at a time of each subject's own, such as the day of a user's first bill: 1d to 366d,
	// 1w to 52w, 1mo to 12mo or 1y to 10y. Each call brings that time: see [Request]. With "1mo" and an Anchor of January 31 at 15:00, a window
	// ends on February 28 at 15:00, and the next on March 31 at 15:00. An open window goes on to its end, whatever Anchor later calls bring.
	Every string `json:"every,omitzero"`
	// TZ is the IANA name of the time zone of Cron or Every, such as "Asia/Shanghai"; "" is UTC.
	TZ string `json:"tz,omitzero"`
	// Burst is the capacity of a TokenBucket, in permits; 0 means Limit. At most 10,000,000, and an empty bucket must fill within a hundred
	// years. With a Limit of 60 a minute and a Burst of 10, ten calls pass at once after a pause, and then one a second.
	Burst int64 `json:"burst,omitzero"`
	// Prepay lets a call take more than a TokenBucket or LeakyBucket holds: the next call waits until that debt is paid. A debt lasts at
	// most 24 hours, or the time of one permit if that is longer. A call that costs more fails with a [NeverAdmissibleError]. At one permit
	// a second and a Burst of 1, a call of 5 permits passes at once, and the next call 5 seconds later.
	Prepay bool `json:"prepay,omitzero"`
	// Warmup is how long the rate of an idle TokenBucket takes to rise from a third of Limit to Limit, as in Guava's SmoothWarmingUp.
	// Such a bucket has no burst, and its calls are prepaid. At most 24 hours. With a Limit of 300 a second and a Warmup of 10 seconds, calls
	// pass at 100 a second after a pause, and at 300 a second after 10 more seconds.
	Warmup time.Duration `json:"warmup,omitzero"`
	// Slices is how many slices a SlidingCounter's window has; 0 means 60. At most 10,000. With 60 slices of a minute, permits come back up
	// to a second later than in a SlidingWindow.
	Slices int64 `json:"slices,omitzero"`
	// Distinct is the directive's template of the members that are counted instead of calls. A request names its Member. The first call
	// of a member costs one permit. Its further calls cost nothing until the first has left the window or is given back. Distinct goes with
	// SlidingWindow and Calendar. With a Limit of 10, a key can write to ten members, and to each of them any number of times.
	Distinct string `json:"distinct,omitzero"`
	// Wait is how long a call may wait for its permits instead of being refused at once; up to 3660 days. It is for generated wrappers:
	// requests wait in [Limiter.Wait] and [Limiter.Reserve], whatever their rules say. It does not go with SlidingCounter. If any rule of a call
	// has Distinct, the call does not wait. With a Wait of 2 seconds, a call whose permits come back in 1.5 seconds sleeps, and one whose permits come
	// back in 3 seconds is refused at once.
	Wait time.Duration `json:"wait,omitzero"`
	// Queue bounds how many permits all calls that wait for a bucket may need together. If each call costs 1, it bounds how many calls may
	// wait. A place of [Limiter.Reserve] counts as a call that waits. 0 means no bound. A rule for a method needs Wait, too; a rule for requests
	// does not. Queue does not go with Prepay or Warmup. With a Queue of 100, the call after 100 that wait is refused at once.
	Queue int64 `json:"queue,omitzero"`
	// Block is how long a key stays refused after a refusal, in whole microseconds, at most 30 days. 0 means no block. With a Block of 10
	// minutes, a key that is refused at 12:00 is refused until 12:10.
	Block time.Duration `json:"block,omitzero"`
	// BlockMax makes blocks longer: each block that begins within a day of the last one's end is twice as long as that one, up to BlockMax. It
	// is longer than Block, and at most 30 days. 0 means that all blocks have the same length. The directive for a Block of 10m and a
	// BlockMax of 24h is block=10m..24h: the blocks last for 10, 20 and 40 minutes, and so on up to a day.
	BlockMax time.Duration `json:"block_max,omitzero"`
	// Pausable gives each count a marker beside it for pauses: see [Limiter.Pause]. A pause then holds from the moment at which it is
	// stored, not within two seconds. Decisions under the rule read the marker, so they take a little longer, and they are neither combined
	// nor remembered. In generated code it is set if the directive has pause=. It does not go with Cron, Every, Lease, shadow or trigger mode.
	// After a pause of 30 seconds that was stored at 12:00:00, no call of the key is admitted until 12:00:30, in any process.
	Pausable bool `json:"pausable,omitzero"`
	// Mode is what happens when the rule refuses a call; ModeEnforce by default. With a Limit of 10, the eleventh call of a window is
	// refused. In ModeShadow it passes, and observers see a refusal. In ModeTrigger it passes as well, and the tenth call was a [Trigger].
	Mode Mode `json:"mode,omitzero"`
	// Scope is who shares the counts; ScopeFleet by default. With a Limit of 10, three processes admit 10 permits together, and 30 in
	// ScopeInstance.
	Scope Scope `json:"scope,omitzero"`
	// Refund is when a call gives its permits back; RefundNever by default. It is for generated wrappers: for requests, use
	// [Decision.Refund]. With RefundError, a call with a cost of 3 that returns an error gives 3 permits back.
	Refund Refund `json:"refund,omitzero"`
	// OnError is what to do while the store fails; the default is the limiter's policy. With FailLocalShare(3) and a Limit of 9, each process
	// admits 3 permits meanwhile.
	OnError FailurePolicy `json:"on_error,omitzero"`
	// Lease lets a process take permits ahead and hand them out itself. It is how long the process may keep them; at most a minute. 0 means
	// no lease. Package redisstore does so for calls whose rules have the same Lease and the same cost; other stores ignore it. It goes with
	// SlidingWindow, FixedWindow, Calendar and TokenBucket without further options. With a Lease of 200 milliseconds, a process that has 1,000
	// calls a second for a key asks the server about five times a second.
	Lease time.Duration `json:"lease,omitzero"`
	// Hash is whether [WithSubjectHash] applies to the rule, as it does by default. With HashNever, errors and events show the key
	// "13800138000" and not 22 characters of a hash.
	Hash Hash `json:"hash,omitzero"`
	// Unreported says that clients should not learn of the rule. Its name, limit and message stand in no answer of packages httplimit and
	// grpclimit, and it is in no [Report]. Only its delay counts: see [TooManyRequestsError.ClientMessage]. The program's own errors, logs and
	// events tell all. For example, a rule of 3 failed logins a day refuses with Retry-After, and does not say how many guesses an attacker has.
	Unreported bool `json:"unreported,omitzero"`
	// Message is what a refused caller is told, such as "One code a minute."; "" is "Too many requests.".
	Message string `json:"message,omitzero"`

	// raised says that an override raised the Limit above 10,000. The rule keeps the time of each permit nevertheless.
	raised bool
	// unnamed says that the rule has the name of its method or type, perhaps followed by a number. Its keys end with its key template.
	unnamed bool
}

// NoLimit is the limit of a call that a rule with Computed does not limit: limit="plan.PerHour" with a PerHour of -1, for example. The rule charges
// such a call nothing. Blocks and pauses of the key still refuse it: then the Limit of the Violation is the highest that the rule can have. An
// override's Limit replaces NoLimit. A Factor does not change it.
const NoLimit = decide.NoLimit

// Validate returns nil if the rule is valid for a method, and a *RuleError otherwise. A rule for requests may also have a Queue without a
// Wait, which Validate refuses.
func (r Rule) Validate() error {
	_, err := r.prepare("")
	return cmp.Or(err, r.checkQueue())
}

// Window returns the name of the rule's window in keys, such as "1m", "fixed:1m", "bucket:1m", "cron:0 0 0 * * *:Asia/Shanghai" or
// "every:1mo".
func (r Rule) Window() string {
	window := period.Format(r.length())
	switch {
	case r.Cron != "":
		window = "cron:" + strings.Join(strings.Fields(r.Cron), " ")
	case r.Every != "":
		window = "every:" + r.Every
	}
	if r.TZ != "" && r.TZ != "UTC" {
		window += ":" + r.TZ
	}
	window = r.counting().Row().Tag + window
	switch {
	case r.Warmup > 0:
		window += ":" + period.Format(r.Warmup)
	case r.accepts("slices"):
		window += ":" + strconv.FormatInt(r.sliceCount(), 10)
	}
	if r.Distinct != "" {
		window = "distinct:" + window
	}
	return window
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

// Mode is what happens when a rule refuses a call. The numbers never change, because stores keep them.
type Mode uint8

const (
	ModeEnforce Mode = iota // the call is refused
	ModeShadow              // the refusal is only reported: see [WithObserver]. Errors, such as a KeyError, fail the call as in ModeEnforce
	ModeTrigger             // the rule never refuses: the function of [WithTrigger] is called when its limit is reached
)

// String returns the directives' word: "enforce", "shadow" or "trigger".
func (m Mode) String() string {
	return word("Mode", uint8(m), "enforce", "shadow", "trigger")
}

// Scope is who shares the counts of a rule.
type Scope uint8

const (
	ScopeFleet    Scope = iota // all limiters of one prefix on the store share them
	ScopeInstance              // each limiter has its own
)

// String returns the directives' word: "fleet" or "instance".
func (s Scope) String() string { return word("Scope", uint8(s), "fleet", "instance") }

// Refund is when the permits of a call are given back.
type Refund uint8

const (
	RefundNever Refund = iota // they stay taken
	RefundError               // if the wrapped call returns an error, or panics
)

// String returns the directives' word: "never" or "error".
func (r Refund) String() string { return word("Refund", uint8(r), "never", "error") }

// word returns words[value], or a text with the name of the type if there is no such word.
func word(name string, value uint8, words ...string) string {
	if int(value) < len(words) {
		return words[value]
	}
	return fmt.Sprintf("%s(%d)", name, value)
}
