package behaviour_test

import (
	"fmt"
	"slices"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A law is the definition of an algorithm, for one rule.
type law interface {
	// window distinguishes the budgets of one name and key.
	window() string
	// most is the largest cost that can ever be admitted.
	most() int64
	// earliest returns the first time, not before from, at which an ask fits if nothing else is admitted after now.
	earliest(h history, now, from int64, q ask) int64
	// keeps reports whether a waiting call gets a place at a time at which it fits.
	keeps(h history, now, at int64, q ask) bool
	// used returns the permits used in the window at now.
	used(h history, now int64) int64
}

func lawOf(r ratelimit.Rule) law {
	switch {
	case r.Distinct != "":
		return memberLaw{r}
	case isCalendar(r):
		return windowLaw{r, calendarOf(r).window}
	case r.Algorithm == ratelimit.FixedWindow:
		return windowLaw{r, func(at int64) (int64, int64) { return at, at + r.Per.Microseconds() }}
	case r.Algorithm == ratelimit.SlidingWindow:
		return slidingLaw{r}
	case r.Algorithm == ratelimit.SlidingCounter:
		return counterLaw{r}
	case r.Algorithm == ratelimit.Concurrency:
		return runningLaw{r}
	case r.Algorithm == ratelimit.TokenBucket, r.Algorithm == ratelimit.LeakyBucket:
		return bucketLaw{r}
	}
	panic(fmt.Sprintf("lawOf has no law for %s", r.Algorithm))
}

// first returns the first time, not before from, at which fits is true. An ask begins to fit when something leaves the window, at one of the
// times in leave.
func first(from int64, leave []int64, fits func(t int64) bool) int64 {
	slices.Sort(leave)
	for _, t := range append([]int64{from}, leave...) {
		if t >= from && fits(t) {
			return t
		}
	}
	panic("the law says neither never nor when")
}

// slidingLaw: the permits taken after t-P plus cost are at most L. Permits of waiting calls count.
type slidingLaw struct{ rule ratelimit.Rule }

func (l slidingLaw) window() string { return fmt.Sprint("sliding ", l.rule.Amounts, l.rule.Per) }
func (l slidingLaw) most() int64    { return l.rule.Limit }

func (l slidingLaw) earliest(h history, _, from int64, q ask) int64 {
	var leave []int64
	for _, e := range h {
		leave = append(leave, e.at+l.rule.Per.Microseconds())
	}
	return first(from, leave, func(t int64) bool { return l.used(h, t)+q.cost <= l.rule.Limit })
}

func (l slidingLaw) keeps(history, int64, int64, ask) bool { return true }

func (l slidingLaw) used(h history, t int64) int64 { return h.sum(t - l.rule.Per.Microseconds() + 1) }

// windowLaw: in each window at most L permits are taken. A charge at t belongs to the first window that ends after t, if that window has begun, or if a
// fixed window that begins at t would overlap it. Otherwise the charge opens a window of its own. A call may be admitted to an earlier window than a
// call that came before it.
type windowLaw struct {
	rule ratelimit.Rule
	open func(at int64) (start, stop int64)
}

func (l windowLaw) window() string {
	if isCalendar(l.rule) {
		return "calendar " + l.rule.Cron + l.rule.Every + " " + l.rule.TZ
	}
	return "fixed " + l.rule.Per.String()
}

func (l windowLaw) most() int64 { return l.rule.Limit }

type span struct{ start, stop, used int64 }

// windows opens the windows of the whole history, and returns those that have not ended.
func (l windowLaw) windows(h history, now int64) []*span {
	var windows []*span
	of := map[int]*span{} // the window of each decision
	live := func(now int64) []*span {
		return slices.DeleteFunc(windows, func(w *span) bool { return w.stop <= now })
	}
	for _, e := range h {
		if e.back {
			of[e.decision].used -= e.cost
			continue
		}
		windows = live(e.now)
		if _, found := l.find(windows, e.now); !found && e.at > e.now { // the present window comes before that of a waiting call
			start, stop := l.open(e.now)
			if !isCalendar(l.rule) {
				stop = min(stop, e.at)
			}
			windows = slices.Insert(windows, 0, &span{start: start, stop: stop})
		}
		i, found := l.find(windows, e.at)
		if !found {
			start, stop := l.open(e.at)
			windows = slices.Insert(windows, i, &span{start: start, stop: stop})
		}
		windows[i].start = min(windows[i].start, e.at)
		windows[i].used += e.cost
		of[e.decision] = windows[i]
	}
	return live(now)
}

// find returns the index of the window for a charge at a time, and true. If there is none, it returns the index at which to insert it, and false.
func (l windowLaw) find(windows []*span, at int64) (int, bool) {
	i := slices.IndexFunc(windows, func(w *span) bool { return at < w.stop })
	if i < 0 {
		return len(windows), false
	}
	start := windows[i].start
	return i, start <= at || !isCalendar(l.rule) && start < at+l.rule.Per.Microseconds()
}

func (l windowLaw) earliest(h history, now, from int64, q ask) int64 {
	windows := l.windows(h, now)
	for {
		i, found := l.find(windows, from)
		if !found || windows[i].used+q.cost <= l.rule.Limit {
			return from
		}
		from = windows[i].stop
	}
}

func (l windowLaw) keeps(history, int64, int64, ask) bool { return true }

func (l windowLaw) used(h history, now int64) int64 {
	windows := l.windows(h, now)
	if i, found := l.find(windows, now); found {
		return windows[i].used
	}
	return 0
}

// counterLaw: the permits in the slice of t and the S slices before it, plus cost, are at most L.
type counterLaw struct{ rule ratelimit.Rule }

func (l counterLaw) window() string { return fmt.Sprint("counter ", l.rule.Per, " ", l.slices()) }
func (l counterLaw) most() int64    { return l.rule.Limit }

func (l counterLaw) slices() int64 {
	if l.rule.Slices == 0 {
		return 60
	}
	return l.rule.Slices
}

func (l counterLaw) width() int64 {
	return (l.rule.Per.Microseconds() + l.slices() - 1) / l.slices()
}

func (l counterLaw) earliest(h history, _, from int64, q ask) int64 {
	var leave []int64
	for _, e := range h {
		leave = append(leave, (e.at/l.width()+l.slices()+1)*l.width())
	}
	return first(from, leave, func(t int64) bool {
		return l.used(h, t)+q.cost <= l.rule.Limit
	})
}

func (l counterLaw) keeps(_ history, now, at int64, _ ask) bool { return at <= now }

func (l counterLaw) used(h history, now int64) int64 {
	return h.sum((now/l.width() - l.slices()) * l.width())
}

// memberLaw: the members admitted since t-P, or since the last fire time, plus one are at most L, or the call's member is one of them.
type memberLaw struct{ rule ratelimit.Rule }

func (l memberLaw) window() string {
	return "distinct " + l.rule.Per.String() + l.rule.Cron + l.rule.Every + " " + l.rule.TZ
}
func (l memberLaw) most() int64 { return l.rule.Limit }

func (l memberLaw) since(t int64) int64 {
	if isCalendar(l.rule) {
		start, _ := calendarOf(l.rule).window(t)
		return start
	}
	return t - l.rule.Per.Microseconds() + 1
}

func (l memberLaw) earliest(h history, now, from int64, q ask) int64 {
	var leave []int64
	if isCalendar(l.rule) {
		_, stop := calendarOf(l.rule).window(now)
		leave = append(leave, stop)
	} else {
		for _, e := range h {
			leave = append(leave, e.at+l.rule.Per.Microseconds())
		}
	}
	return first(from, leave, func(t int64) bool { return isKnown(l, h, t, q.member) || l.used(h, t)+1 <= l.rule.Limit })
}

func (l memberLaw) keeps(_ history, now, at int64, _ ask) bool { return at <= now }

func (l memberLaw) used(h history, t int64) int64 { return h.sum(l.since(t)) }

// isKnown reports whether a member is already counted, so that its call costs nothing.
func isKnown(law law, h history, t int64, member string) bool {
	l, ok := law.(memberLaw)
	return ok && slices.ContainsFunc(h, func(e event) bool {
		return e.member == member && !e.back && !e.returned && e.at >= l.since(t)
	})
}

// A calendar computes the fire times of one cron expression without parsing it.
type calendar struct {
	floor func(time.Time) time.Time // returns the last fire time, in the calendar's zone
	after func(time.Time) time.Time // returns the fire time after a fire time
	zone  *time.Location
}

// window returns the fire times around t.
func (c calendar) window(t int64) (start, stop int64) {
	last := c.floor(time.UnixMicro(t).In(c.zone))
	return last.UnixMicro(), c.after(last).UnixMicro()
}
