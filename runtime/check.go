package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

const (
	maxName        = 256
	maxPer         = 3660 * 24 * time.Hour
	maxBlock       = decide.MaxBlock
	maxLimit       = engine.MaxLimit
	maxBucketLimit = engine.MaxBucketLimit
	maxRefill      = 36600 * 24 * time.Hour // how long an empty bucket may take to fill
	maxWarmup      = 24 * time.Hour
	maxLease       = time.Minute // useful leases are far shorter
	maxSlices      = 10_000
	defaultSlices  = 60
)

var checks = []func(Rule) error{
	Rule.checkName, Rule.checkWindow, Rule.checkLimit, Rule.checkBucket, Rule.checkDistinct, Rule.checkWait, Rule.checkMode, Rule.checkLease,
	Rule.checkPause,
}

// check returns the first error of the rule. It does not parse the cron expression, nor Every.
func (r Rule) check() error { return cmp.Or(r.checkName(), r.checkValues()) }

// checkValues is check for a rule whose name does not matter.
func (r Rule) checkValues() error {
	for _, check := range checks[1:] {
		if err := check(r); err != nil {
			return err
		}
	}
	return nil
}

// Problems returns what is wrong with the rule, at most one thing for each group of fields that belong together. Validate
// returns the first of them. arguments are those of its directive that are no fields, such as settle and hold.
func (r Rule) Problems(arguments ...string) []*RuleError {
	var all []*RuleError
	add := func(err error) {
		if wrong, ok := errors.AsType[*RuleError](err); ok {
			all = append(all, wrong)
		}
	}
	for _, check := range append(slices.Clone(checks), Rule.checkQueue, Rule.checkCalendar) {
		add(check(r))
	}
	for _, argument := range arguments {
		add(r.checkAccepts(argument, true))
	}
	return all
}

func (r Rule) checkCalendar() error { return r.setCalendar(new(engine.Rule)) }

// wrong returns an error of an argument. Durations that were found are shown as directives write them.
func (r *Rule) wrong(argument, format string, found ...any) error {
	for i := range found {
		if d, ok := found[i].(time.Duration); ok {
			found[i] = period.Format(d)
		}
	}
	return &RuleError{Rule: r.Name, Argument: argument, Reason: fmt.Sprintf(format, found...)}
}

// wrongIf returns the error of wrong if is, and otherwise nil.
func (r *Rule) wrongIf(is bool, argument, format string, found ...any) error {
	if !is {
		return nil
	}
	return r.wrong(argument, format, found...)
}

// checkSpan checks a duration in which the engine counts.
func (r *Rule) checkSpan(argument string, d, most time.Duration) error {
	return r.wrongIf(d < 0 || d > most || d%time.Microsecond != 0, argument, "found %s; expected whole microseconds, up to %s", d, most)
}

// checkName protects the keys. A brace in a name would move the hash tag, and a colon could make a name look like a prefix and a name. With a * it
// would look like a glob.
func (r Rule) checkName() error {
	if len(r.Name) > maxName {
		return r.wrong("name", "found %d bytes; expected at most %d", len(r.Name), maxName)
	}
	if !utf8.ValidString(r.Name) {
		return r.wrong("name", "found %q, which is no UTF-8", r.Name)
	}
	for _, c := range r.Name {
		if strings.ContainsRune("{}%:*\"'`", c) || unicode.IsSpace(c) || !unicode.IsPrint(c) {
			return r.wrong("name", "found %q; expected no spaces, no control characters, and none of {}%%:*\"'`", c)
		}
	}
	if method := fleet.SettingName(r.Name); method != r.Name && !r.unnamed {
		return r.wrong("name", "found the name of one unnamed rule of a method; expected %s, the name of all of them", method)
	}
	return nil
}

func (r Rule) checkWindow() error {
	calendar := "cron"
	if r.Every != "" {
		calendar = "every"
	}
	if r.Cron != "" || r.Every != "" {
		return cmp.Or(
			r.wrongIf(r.Per != 0, calendar, "found per as well; expected one of the two"),
			r.wrongIf(r.Cron != "" && r.Every != "", calendar, "found cron as well; expected one of the two"),
			r.wrongIf(r.Algorithm != SlidingWindow && r.Algorithm != Calendar,
				"algorithm", "found %s with %s, whose windows are the calendar's", r.Algorithm, calendar),
		)
	}
	least := r.algorithm().Row().MinPer
	return cmp.Or(
		r.wrongIf(r.Algorithm == Calendar, "algorithm", "calendar needs cron or every, which say when its windows end"),
		r.wrongIf(r.Algorithm >= numAlgorithms, "algorithm", "found %s; expected %s to %s", r.Algorithm, Algorithm(0), numAlgorithms-1),
		r.wrongIf(r.TZ != "", "tz", "found a time zone without cron or every"),
		r.wrongIf(r.length() == 0, "per", "a rule needs a window: per=1m, cron= for calendar times, or every= with an anchor"),
		r.checkSpan("per", r.Per, maxPer),
		r.wrongIf(r.length() < least, "per", "found %s; expected %s or more for %s", r.Per, least, r.what()),
	)
}

func (r Rule) checkLimit() error {
	reason := r.wrongLimit(r.Limit)
	tooMany := r.Slices > maxSlices || r.Per > 0 && r.Slices > r.Per.Microseconds()
	return cmp.Or(
		r.wrongIf(r.Computed && r.Limit != 0,
			"limit", "found %d and Computed, which says that each call brings its limit; expected one of the two", r.Limit),
		r.wrongIf(r.Limit == NoLimit, "limit", "found -1, which only a limit that comes with a call can be, as in limit=%q; remove the rule, or use "+
			"mode=shadow, which refuses no call", "plan.Limit"),
		r.wrongIf(reason != "", "limit", "%s", reason),
		r.checkAccepts("slices", r.Slices != 0),
		r.wrongIf(r.Slices < 0 || tooMany, "slices", "found %d; expected 1 to %d, each at least a microsecond long", r.Slices, maxSlices),
	)
}

// wrongLimit says what is wrong with a limit for this rule, or returns "". The limit is the rule's own, or comes with a call.
func (r Rule) wrongLimit(limit int64) string {
	most, what := r.mostLimit(), r.what()
	switch {
	case !r.kind().KeepsTimes():
	case limit > 0 && !r.Computed:
		what += " that keeps the time of each permit"
	default:
		most = engine.MaxAmounts
	}
	if limit < 0 || limit > most {
		return fmt.Sprintf("found %d; expected 0 to %d for %s", limit, most, what)
	}
	return ""
}

// mostLimit returns the highest limit that the rule can have.
func (r Rule) mostLimit() int64 {
	if r.Distinct != "" {
		return engine.MaxMembers
	}
	return r.counting().Row().MaxLimit
}

// what names the kind of rule, with an article.
func (r Rule) what() string {
	if kind := r.algorithm(); kind != 0 {
		return "a " + wordsOf[kind].noun
	}
	return "a " + r.Algorithm.String()
}

func (r Rule) checkBucket() error {
	return cmp.Or(
		r.checkAccepts("burst", r.Burst != 0),
		r.checkAccepts("prepay", r.Prepay),
		r.checkAccepts("warmup", r.Warmup != 0),
		r.wrongIf(r.Burst < 0 || r.Burst > maxBucketLimit, "burst", "found %d; expected 1 to %d", r.Burst, maxBucketLimit),
		r.wrongIf(r.refillsTooSlowly(r.Limit), "burst", "found %d, which takes over a hundred years to fill at %d per %s", r.Burst, r.Limit, r.Per),
		r.wrongIf(r.Warmup != 0 && r.Warmup < time.Microsecond || r.Warmup > maxWarmup,
			"warmup", "found %s; expected 1us to %s", r.Warmup, maxWarmup),
		r.wrongIf(r.Warmup != 0 && r.Burst != 0, "burst", "found warmup as well, which stores no permits to burst"),
	)
}

// refillsTooSlowly reports whether the burst takes more than a hundred years to fill at a limit. The engine cannot compute with such times.
func (r *Rule) refillsTooSlowly(limit int64) bool {
	return limit > 0 && float64(r.Burst)/float64(limit)*float64(r.Per) > float64(maxRefill)
}

func (r Rule) checkDistinct() error {
	return cmp.Or(
		r.wrongIf(r.Amounts && r.Distinct != "", "distinct", "Amounts does not go with distinct=: each member counts once"),
		r.wrongIf(r.Amounts && r.algorithm() != engine.SlidingWindow, "algorithm", "Amounts goes with sliding-window; found %s", r.what()),
		r.checkAccepts("distinct", r.Distinct != ""),
	)
}

// checkWaits returns an error if calls wait and cannot wait for the rule.
func (r *Rule) checkWaits(waits bool) error {
	return cmp.Or(
		r.wrongIf(waits && r.Distinct != "", "wait", "found distinct as well; calls that count members do not wait"),
		r.checkAccepts("wait", waits),
	)
}

func (r Rule) checkWait() error {
	const own = "found %s as well; expected a bucket whose calls wait for their own permits"
	return cmp.Or(
		r.checkAccepts("queue", r.Queue != 0),
		r.wrongIf(r.Wait < 0 || r.Wait > maxPer, "wait", "found %s; expected up to %s", r.Wait, maxPer),
		r.wrongIf(r.Wait > 0 && r.Mode != ModeEnforce, "wait", "found mode=%s, which delays no call", r.Mode),
		r.checkWaits(r.Wait > 0),
		r.wrongIf(r.Queue != 0 && r.Prepay, "queue", own, "prepay"),
		r.wrongIf(r.Queue != 0 && r.Warmup != 0, "queue", own, "warmup"),
		r.wrongIf(r.Queue < 0 || r.Queue > math.MaxInt32, "queue", "found %d; expected 1 to %d", r.Queue, math.MaxInt32),
	)
}

// checkQueue checks a rule of a method: Queue needs Wait there. A request does not need it, because [Limiter.Wait] waits for any rule.
func (r Rule) checkQueue() error {
	return r.wrongIf(r.Queue != 0 && r.Wait == 0 && r.checkWait() == nil, "queue", "needs wait=: calls that do not wait cannot queue")
}

func (r Rule) checkMode() error {
	isShorter := r.BlockMax != 0 && (r.BlockMax <= r.Block || r.Block == 0)
	return cmp.Or(
		r.checkAccepts("block", r.Block != 0),
		r.checkAccepts("refund", r.Refund != RefundNever),
		r.wrongIf(r.Mode > ModeTrigger, "mode", "found %d; expected enforce, shadow or trigger", r.Mode),
		r.wrongIf(r.Mode == ModeTrigger && (!r.accepts("trigger") || r.Limit == 0 && !r.Computed),
			"mode", "trigger needs a window of at least one permit that fills up; found %s of %d", r.what(), r.Limit),
		r.checkSpan("block", r.Block, maxBlock),
		r.wrongIf(isShorter || r.BlockMax > maxBlock || r.BlockMax%time.Microsecond != 0,
			"block", "found %s..%s; expected a longer second duration, in whole microseconds, up to %s", r.Block, r.BlockMax, maxBlock),
		r.wrongIf(r.Block > 0 && r.Mode != ModeEnforce, "block", "found mode=%s, which refuses no call", r.Mode),
		r.wrongIf(r.Scope > ScopeInstance, "scope", "found %d; expected fleet or instance", r.Scope),
		r.wrongIf(r.Refund > RefundError, "refund", "found %d; expected never or error", r.Refund),
		r.wrongIf(r.Hash > HashNever, "hash", "found %d; expected true or false", r.Hash),
		r.wrongIf(decide.Policy(r.OnError).Base() > decide.FailLocal, "on-error", "found %d; expected deny, allow or local", r.OnError),
	)
}

// checkPause returns an error if the rule is Pausable and a pause would not hold its calls.
func (r Rule) checkPause() error {
	if !r.Pausable {
		return nil
	}
	return cmp.Or(
		r.checkAccepts("pause", true),
		r.wrongIf(r.Lease > 0, "pause", "found lease as well; a process hands out what it has taken ahead, whatever pauses"),
		r.wrongIf(r.Mode != ModeEnforce, "pause", "found mode=%s, which holds no call", r.Mode),
	)
}

// checkLease returns an error if the rule has a Lease and permits taken ahead would change what the rule means.
func (r Rule) checkLease() error {
	if r.Lease == 0 {
		return nil
	}
	return cmp.Or(
		r.checkSpan("lease", r.Lease, maxLease),
		r.checkAccepts("lease", true),
		r.wrongIf(r.Wait > 0, "lease", "found wait as well; a call does not wait for permits that are taken ahead"),
		r.wrongIf(r.Distinct != "", "lease", "found distinct as well; members cannot be taken ahead"),
		r.wrongIf(r.Block > 0, "lease", "found block as well; a refusal in this process would block nobody elsewhere"),
		r.wrongIf(r.Mode != ModeEnforce, "lease", "found mode=%s, which needs the count of all", r.Mode),
		r.wrongIf(r.Prepay || r.Warmup > 0, "lease", "found prepay or warmup as well; expected a bucket without debts"),
		r.wrongIf(r.Scope == ScopeInstance, "lease", "found scope=instance, which counts in this process anyway"),
	)
}

// Check returns nil if all rules are valid and the limiter's store can decide each of them. Otherwise the error wraps a *RuleError for each
// rule that fails. Not every store knows every algorithm. Call Check when the program starts: without it, the first call under such a rule
// fails with that error and charges nothing. After Check, [Limiter.Ping] also checks the permissions that these rules need.
func (l *Limiter) Check(rules ...Rule) error {
	var failed []error
	for _, rule := range rules {
		p, err := rule.prepare("")
		if err == nil {
			err = l.machine().Supports(p, p.Wait.Microseconds())
		}
		if err == nil {
			l.machine().Note(p)
		}
		failed = append(failed, err)
	}
	return printable.Join(failed...)
}
