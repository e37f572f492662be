package doubt

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// smallLimit is the highest limit for which boundaryBurst warns. Authors of such low limits probably care about each call.
const smallLimit = 10

// boundaryBurst warns of a fixed window with a small limit. All calls but the first may come at the end of the window, and a full
// limit of calls right after it. A rule with a name gets no warning.
func (a *analysis) boundaryBurst(r *model.Rule) {
	limit, known := limitOf(r)
	small := known && 1 < limit && limit <= smallLimit
	if r.Declared.Algorithm != ratelimit.FixedWindow || r.Declared.Mode == ratelimit.ModeTrigger || !small || r.Rule.Text("name") != "" {
		return
	}
	rule := r.Declared
	rule.Algorithm = ratelimit.SlidingWindow
	a.found.Warn(r.At("algorithm"), "up to %d permits can pass around the end of a fixed window of %d; sliding-window keeps to %d in any %s",
		2*limit-1, limit, limit, rule.Window())
}

// sharedAnchor warns of windows that begin at a time that differs between callers, although all of them share one budget. A rule with a name
// gets no warning.
func (a *analysis) sharedAnchor(r *model.Rule) {
	if _, everybody := same(r.Subject); everybody && differs(r.Anchor) && r.Rule.Text("name") == "" {
		a.found.Warn(r.At("anchor"), "anchor: all callers share one window, and the call that opens it says when it begins; "+
			"write key= for those whom the anchor belongs to, or give the rule a name if that is meant")
	}
}

// longLease warns of a lease that is so long that the limit cannot be reached: permits of a sliding window leave it up to one lease
// later, and a bucket loses its gain of up to two leases. Leases of fixed and calendar windows end with the window.
func (a *analysis) longLease(r *model.Rule) {
	rule, longest, advice := r.Declared, r.Declared.Per/2, ""
	switch limit, known := limitOf(r); {
	case rule.Algorithm == ratelimit.FixedWindow || rule.Cron != "" || rule.Every != "":
		return
	case rule.Algorithm == ratelimit.TokenBucket:
		advice = ", or a larger burst"
		if rule.Burst > 0 && known && limit > 0 {
			longest = time.Duration(float64(longest) / float64(limit) * float64(rule.Burst))
		}
	}
	if rule.Lease > longest {
		a.found.Warn(r.At("lease"), "lease: permits taken ahead for %s come back too late for the limit to be reached; expected at most %s%s",
			period.Format(rule.Lease), period.Format(longest), advice)
	}
}

// shortWait warns of a wait for a bucket that is shorter than the time in which a call's permits come: most calls would be refused anyway.
func (a *analysis) shortWait(r *model.Rule) {
	limit, known := limitOf(r)
	cost, constant := costOf(r)
	isBucket := r.Declared.Algorithm == ratelimit.TokenBucket || r.Declared.Algorithm == ratelimit.LeakyBucket
	if !isBucket || r.Declared.Wait <= 0 || !known || limit <= 0 || !constant || r.Declared.Prepay || r.Declared.Warmup > 0 {
		return
	}
	if each := time.Duration(float64(r.Declared.Per) / float64(limit) * float64(cost)).Round(time.Microsecond); r.Declared.Wait < each {
		a.found.Warn(r.At("wait"), "wait: the permits of a call come within %s, so most calls that find none are refused after all; "+
			"expected at least %[1]s", period.Format(each))
	}
}

// shortMonths warns of calendar windows that end on a day that some months lack, such as the 31st. Such a month goes into the window of the
// next one.
func (a *analysis) shortMonths(r *model.Rule) {
	fields := strings.Fields(r.Declared.Cron)
	if len(fields) < 5 {
		return
	}
	day, month, weekday := fields[len(fields)-3], fields[len(fields)-2], fields[len(fields)-1]
	if slices.Contains([]string{"29", "30", "31"}, day) && strings.Trim(month+weekday, "*?") == "" {
		a.found.Warn(r.At("cron"), "cron: a month without the day %s goes into the window of the next one, which is then up to 61 days long; "+
			"with the day 1, windows end when a month does", day)
	}
}

// step matches a field of a cron expression that is a step through all of its numbers.
var step = regexp.MustCompile(`^(?:[*?]|0)/([0-9]+)$`)

// unevenSteps warns of a step that does not divide its field, such as */5 hours: each day ends in a window of four hours.
func (a *analysis) unevenSteps(r *model.Rule) {
	fields := strings.Fields("0 " + r.Declared.Cron)
	fields = fields[max(0, len(fields)-6):]
	for i, of := range []string{"minute", "hour", "day", "month", "year"}[:max(0, len(fields)-1)] { // then comes the day of the week
		m := step.FindStringSubmatch(fields[i])
		if m == nil {
			continue
		}
		size := []int{60, 60, 24, 1, 12}[i] // a month has no fixed size
		if n, _ := strconv.Atoi(m[1]); n > 1 && size%n > 0 {
			a.found.Warn(r.At("cron"), "cron: %s begins anew with each %s, so the last window of the %[2]s is shorter, with the same limit; "+
				"expected a list of numbers, or a step that divides the %[2]s", fields[i], of)
		}
	}
}
