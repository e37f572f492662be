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

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

const (
	maxName        = 256
	maxPer         = 3660 * 24 * time.Hour
	maxBlock       = 30 * 24 * time.Hour
	maxLimit       = engine.MaxLimit
	maxBucketLimit = engine.MaxBucketLimit
	maxRefill      = 36600 * 24 * time.Hour // how long an empty bucket may take to fill
	maxSlices      = 10_000
	defaultSlices  = 60
)

var checks = []func(Rule) error{
	Rule.checkName, Rule.checkWindow, Rule.checkLimit, Rule.checkBucket, Rule.checkDistinct, Rule.checkWait, Rule.checkMode, Rule.checkLease,
	Rule.checkPause,
}

// check returns the first error of the rule. It does not parse the cron expression.
func (r Rule) check() error {
	for _, check := range checks {
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
	for _, check := range append(slices.Clone(checks), Rule.checkQueue, Rule.checkCron) {
		add(check(r))
	}
	for _, argument := range arguments {
		add(r.checkAccepts(argument, true))
	}
	return all
}

func (r Rule) checkCron() error {
	if r.Cron == "" {
		return nil
	}
	_, err := r.schedule()
	return err
}

func (r Rule) wrong(argument, format string, args ...any) error {
	return &RuleError{Rule: r.Name, Argument: argument, Reason: fmt.Sprintf(format, args...)}
}

// checkName protects the keys. A brace in a name would move the hash tag, and a colon could make a name look like a prefix and a name.
func (r Rule) checkName() error {
	if len(r.Name) > maxName {
		return r.wrong("name", "found %d bytes; expected at most %d", len(r.Name), maxName)
	}
	if !utf8.ValidString(r.Name) {
		return r.wrong("name", "found %q, which is no UTF-8", r.Name)
	}
	for _, c := range r.Name {
		if strings.ContainsRune("{}%:\"'`", c) || unicode.IsSpace(c) || !unicode.IsPrint(c) {
			return r.wrong("name", "found %q; expected no spaces, no control characters, and none of {}%%:\"'`", c)
		}
	}
	if method := fleet.SettingName(r.Name); method != r.Name && !r.unnamed {
		return r.wrong("name", "found the name of one unnamed rule of a method; expected %s, the name of all of them", method)
	}
	return nil
}

func (r Rule) checkWindow() error {
	switch {
	case r.Per != 0 && r.Cron != "":
		return r.wrong("cron", "found per as well; expected one of the two")
	case r.Cron != "" && r.Algorithm != SlidingWindow && r.Algorithm != Calendar:
		return r.wrong("algorithm", "found %s with cron, whose windows are the calendar's", r.Algorithm)
	case r.Cron != "":
		return nil
	case r.Algorithm == Calendar:
		return r.wrong("algorithm", "calendar needs cron, which says when its windows end")
	case r.Algorithm >= numAlgorithms:
		return r.wrong("algorithm", "found %s; expected %s to %s", r.Algorithm, Algorithm(0), numAlgorithms-1)
	case r.TZ != "":
		return r.wrong("tz", "found a time zone without cron")
	case r.length() == 0:
		return r.wrong("per", "a rule needs a window: per=1m, or cron= for calendar times")
	case r.Per < 0 || r.Per > maxPer || r.Per%time.Microsecond != 0:
		return r.wrong("per", "found %s; expected whole microseconds, up to %s", period.Format(r.Per), period.Format(maxPer))
	case r.length() < r.algorithm().Row().MinPer:
		return r.wrong("per", "found %s; expected %s or more for %s", period.Format(r.Per), period.Format(r.algorithm().Row().MinPer), r.what())
	}
	return nil
}

func (r Rule) checkLimit() error {
	if r.Computed && r.Limit != 0 {
		return r.wrong("limit", "found %d and Computed, which says that each call brings its limit; expected one of the two", r.Limit)
	}
	if reason := r.wrongLimit(r.Limit); reason != "" {
		return r.wrong("limit", "%s", reason)
	}
	if err := r.checkAccepts("slices", r.Slices != 0); err != nil || r.Slices == 0 {
		return err
	}
	if r.Slices < 1 || r.Slices > maxSlices || r.Per > 0 && r.Slices > r.Per.Microseconds() {
		return r.wrong("slices", "found %d; expected 1 to %d, each at least a microsecond long", r.Slices, maxSlices)
	}
	return nil
}

// wrongLimit says what is wrong with a limit for this rule, or returns "". The limit is the rule's own, or comes with a call.
func (r Rule) wrongLimit(limit int64) string {
	most, what := r.mostLimit(), r.what()
	switch {
	case !r.kind().KeepsTimes():
	case limit > 0:
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
		return "a " + kind.Noun()
	}
	return "a " + r.Algorithm.String()
}

func (r Rule) checkBucket() error {
	err := cmp.Or(r.checkAccepts("burst", r.Burst != 0), r.checkAccepts("prepay", r.Prepay), r.checkAccepts("warmup", r.Warmup != 0))
	switch {
	case err != nil:
		return err
	case r.Burst < 0 || r.Burst > maxBucketLimit:
		return r.wrong("burst", "found %d; expected 1 to %d", r.Burst, maxBucketLimit)
	case r.refillsTooSlowly(r.Limit):
		return r.wrong("burst", "found %d, which takes over a hundred years to fill at %d per %s", r.Burst, r.Limit, period.Format(r.Per))
	case r.Warmup != 0 && (r.Warmup < time.Microsecond || r.Warmup > maxWarmup):
		return r.wrong("warmup", "found %s; expected 1us to %s", period.Format(r.Warmup), period.Format(maxWarmup))
	case r.Warmup != 0 && r.Burst != 0:
		return r.wrong("burst", "found warmup as well, which stores no permits to burst")
	}
	return nil
}

// refillsTooSlowly reports whether the burst takes more than a hundred years to fill at a limit. The engine cannot compute with such times.
func (r *Rule) refillsTooSlowly(limit int64) bool {
	return limit > 0 && float64(r.Burst)/float64(limit)*float64(r.Per) > float64(maxRefill)
}

const maxWarmup = 24 * time.Hour

func (r Rule) checkDistinct() error {
	if r.Amounts && r.Distinct != "" {
		return r.wrong("distinct", "Amounts does not go with distinct=: each member counts once")
	}
	if r.Amounts && r.algorithm() != engine.SlidingWindow {
		return r.wrong("algorithm", "Amounts goes with sliding-window; found %s", r.what())
	}
	return r.checkAccepts("distinct", r.Distinct != "")
}

// checkCanWait returns an error if calls cannot wait for the rule.
func (r *Rule) checkCanWait() error {
	if r.Distinct != "" {
		return r.wrong("wait", "found distinct as well; calls that count members do not wait")
	}
	return r.checkAccepts("wait", true)
}

func (r Rule) checkWait() error {
	if err := r.checkAccepts("queue", r.Queue != 0); err != nil {
		return err
	}
	switch {
	case r.Wait < 0 || r.Wait > maxPer:
		return r.wrong("wait", "found %s; expected up to %s", period.Format(r.Wait), period.Format(maxPer))
	case r.Wait > 0 && r.Mode != ModeEnforce:
		return r.wrong("wait", "found mode=%s, which delays no call", r.Mode)
	case r.Wait > 0 && r.checkCanWait() != nil:
		return r.checkCanWait()
	case r.Queue != 0 && r.Prepay:
		return r.wrong("queue", "found prepay as well; expected a bucket whose calls wait for their own permits")
	case r.Queue != 0 && r.Warmup != 0:
		return r.wrong("queue", "found warmup as well; expected a bucket whose calls wait for their own permits")
	case r.Queue < 0 || r.Queue > math.MaxInt32:
		return r.wrong("queue", "found %d; expected 1 to %d", r.Queue, math.MaxInt32)
	}
	return nil
}

// checkQueue checks a rule of a method: Queue needs Wait there. A request does not need it, because [Limiter.Wait] waits for any rule.
func (r Rule) checkQueue() error {
	if r.Queue != 0 && r.Wait == 0 && r.checkWait() == nil {
		return r.wrong("queue", "needs wait=: calls that do not wait cannot queue")
	}
	return nil
}

func (r Rule) checkMode() error {
	err := cmp.Or(r.checkAccepts("block", r.Block != 0), r.checkAccepts("refund", r.Refund != RefundNever))
	switch {
	case err != nil:
		return err
	case r.Mode > ModeTrigger:
		return r.wrong("mode", "found %d; expected enforce, shadow or trigger", r.Mode)
	case r.Mode == ModeTrigger && (!r.accepts("trigger") || r.Limit == 0 && !r.Computed):
		return r.wrong("mode", "trigger needs a window of at least one permit that fills up; found %s of %d", r.what(), r.Limit)
	case r.Block < 0 || r.Block > maxBlock || r.Block%time.Microsecond != 0:
		return r.wrong("block", "found %s; expected whole microseconds, up to %s", period.Format(r.Block), period.Format(maxBlock))
	case r.BlockMax != 0 && (r.BlockMax <= r.Block || r.Block == 0 || r.BlockMax > maxBlock || r.BlockMax%time.Microsecond != 0):
		return r.wrong("block", "found %s..%s; expected a longer second duration, in whole microseconds, up to %s",
			period.Format(r.Block), period.Format(r.BlockMax), period.Format(maxBlock))
	case r.Block > 0 && r.Mode != ModeEnforce:
		return r.wrong("block", "found mode=%s, which refuses no call", r.Mode)
	case r.Scope > ScopeInstance:
		return r.wrong("scope", "found %d; expected fleet or instance", r.Scope)
	case r.Refund > RefundError:
		return r.wrong("refund", "found %d; expected never or error", r.Refund)
	case r.Hash > HashNever:
		return r.wrong("hash", "found %d; expected true or false", r.Hash)
	case r.OnError.base() > FailLocal:
		return r.wrong("on-error", "found %d; expected deny, allow or local", r.OnError)
	}
	return nil
}

// checkPause returns an error if the rule is Pausable and a pause would not hold its calls.
func (r Rule) checkPause() error {
	switch {
	case !r.Pausable:
	case !r.accepts("pause"):
		return r.checkAccepts("pause", true)
	case r.Lease > 0:
		return r.wrong("pause", "found lease as well; a process hands out what it has taken ahead, whatever pauses")
	case r.Mode != ModeEnforce:
		return r.wrong("pause", "found mode=%s, which holds no call", r.Mode)
	}
	return nil
}

// maxLease is the longest lease. Useful ones are far shorter.
const maxLease = time.Minute

// checkLease returns an error if the rule has a Lease and permits taken ahead would change what the rule means.
func (r Rule) checkLease() error {
	switch {
	case r.Lease == 0:
	case r.Lease < 0 || r.Lease > maxLease || r.Lease%time.Microsecond != 0:
		return r.wrong("lease", "found %s; expected whole microseconds, up to %s", period.Format(r.Lease), period.Format(maxLease))
	case !r.accepts("lease"):
		return r.checkAccepts("lease", true)
	case r.Wait > 0:
		return r.wrong("lease", "found wait as well; a call does not wait for permits that are taken ahead")
	case r.Distinct != "":
		return r.wrong("lease", "found distinct as well; members cannot be taken ahead")
	case r.Block > 0:
		return r.wrong("lease", "found block as well; a refusal in this process would block nobody elsewhere")
	case r.Mode != ModeEnforce:
		return r.wrong("lease", "found mode=%s, which needs the count of all", r.Mode)
	case r.Prepay || r.Warmup > 0:
		return r.wrong("lease", "found prepay or warmup as well; expected a bucket without debts")
	case r.Scope == ScopeInstance:
		return r.wrong("lease", "found scope=instance, which counts in this process anyway")
	}
	return nil
}

// Check returns nil if all rules are valid and the limiter's store can decide each of them. Otherwise the error wraps a *RuleError for each
// rule that fails. Not every store knows every algorithm. Call Check when the program starts: without it, the first call under such a rule
// fails with that error and charges nothing. After Check, [Limiter.Ping] also checks the permissions that these rules need.
func (l *Limiter) Check(rules ...Rule) error {
	var failed []error
	for _, rule := range rules {
		p, err := rule.prepare("")
		if err == nil {
			err = l.supports(p, p.Wait.Microseconds())
		}
		if err == nil {
			l.note(p)
		}
		failed = append(failed, err)
	}
	return joinErrors(failed...)
}

// supports returns an error if the store cannot decide a rule that may delay its calls by wait microseconds.
func (l *Limiter) supports(rule *preparedRule, wait int64) error {
	if rule.Scope == ScopeInstance {
		return nil
	}
	if argument, reason := l.store.Unsupported(rule.numbers, wait); reason != "" {
		return rule.wrong(argument, "%s", reason)
	}
	return nil
}
