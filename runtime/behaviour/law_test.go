package behaviour_test

import (
	"fmt"
	"slices"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A law is the definition of an algorithm, for one rule.
type law interface {
	// window tells budgets of one name and key apart.
	window() string
	// most is the largest cost that can ever be admitted.
	most() int64
	// fits reports whether an ask is admissible at t.
	fits(h history, t int64, q ask) bool
	// turns returns the instants at which an ask may begin to fit if nothing else is admitted.
	turns(h history, now int64, q ask) []int64
	// used is what is used in the window that holds t.
	used(h history, t int64) int64
}

func lawOf(r ratelimit.Rule) law {
	switch {
	case r.Distinct != "":
		return memberLaw{r}
	case r.Cron != "":
		return windowLaw{r, calendars[r.Cron+" "+r.TZ].window}
	case r.Algorithm == ratelimit.FixedWindow:
		return windowLaw{r, func(at int64) (int64, int64) { return at, at + r.Per.Microseconds() }}
	case r.Algorithm == ratelimit.SlidingWindow:
		return slidingLaw{r}
	case r.Algorithm == ratelimit.SlidingCounter:
		return counterLaw{r}
	case r.Warmup > 0:
		return warmLaw{r}
	case r.Algorithm == ratelimit.TokenBucket, r.Algorithm == ratelimit.LeakyBucket:
		return bucketLaw{r}
	}
	panic(fmt.Sprintf("the model has no law for algorithm %d", r.Algorithm))
}

// slidingLaw: the permits taken since t-P, without that instant, plus cost are at most L. Those of calls that wait count.
type slidingLaw struct{ rule ratelimit.Rule }

func (l slidingLaw) window() string { return "sliding " + l.rule.Per.String() }
func (l slidingLaw) most() int64    { return l.rule.Limit }

func (l slidingLaw) fits(h history, t int64, q ask) bool { return l.used(h, t)+q.cost <= l.rule.Limit }

func (l slidingLaw) used(h history, t int64) int64 { return h.sum(t - l.rule.Per.Microseconds() + 1) }

func (l slidingLaw) turns(h history, _ int64, _ ask) []int64 {
	var leave []int64
	for _, e := range h {
		leave = append(leave, e.at+l.rule.Per.Microseconds())
	}
	return leave
}

// windowLaw: a charge counts in the window that holds its time, or opens one there; where that would reach into a later fixed
// window, the charge counts in that one, which begins earlier then. In each window that is not over, the permits plus cost are
// at most L, so that nobody passes those who wait for a window that is too full. A return gives permits back and leaves a
// window open that has begun; one that is still to come, and has nothing left, goes.
type windowLaw struct {
	rule ratelimit.Rule
	open func(at int64) (start, stop int64)
}

func (l windowLaw) window() string {
	if l.rule.Cron != "" {
		return "cron " + l.rule.Cron + " " + l.rule.TZ
	}
	return "fixed " + l.rule.Per.String()
}

func (l windowLaw) most() int64 { return l.rule.Limit }

type span struct{ start, stop, used int64 }

func (s *span) holds(t int64) bool { return s.start <= t && t < s.stop }

// windows opens one window after the other from the beginning.
func (l windowLaw) windows(h history) []*span {
	windows := []*span{{}}
	of := map[int]*span{} // the window of each decision
	for _, e := range h {
		if e.back {
			of[e.decision].used -= e.cost
			windows = slices.DeleteFunc(windows, func(w *span) bool { return w.used == 0 && w.start > e.at })
			continue
		}
		last := len(windows) - 1
		for last >= 0 && !windows[last].holds(e.at) {
			last--
		}
		if last < 0 {
			start, stop := l.open(e.at)
			last = slices.IndexFunc(windows, func(w *span) bool { return w.start > e.at })
			switch {
			case last < 0:
				last = len(windows)
				windows = append(windows, &span{start: start, stop: stop})
			case l.rule.Cron == "" && stop > windows[last].start:
				windows[last].start = e.at
			default:
				windows = slices.Insert(windows, last, &span{start: start, stop: stop})
			}
		}
		windows[last].used += e.cost
		of[e.decision] = windows[last]
	}
	return windows
}

func (l windowLaw) fits(h history, t int64, q ask) bool {
	return !slices.ContainsFunc(l.windows(h), func(w *span) bool { return t < w.stop && w.used+q.cost > l.rule.Limit })
}

func (l windowLaw) used(h history, t int64) int64 {
	for _, w := range slices.Backward(l.windows(h)) {
		if w.holds(t) {
			return w.used
		}
	}
	return 0
}

func (l windowLaw) turns(h history, _ int64, _ ask) []int64 {
	var ends []int64
	for _, w := range l.windows(h) {
		ends = append(ends, w.start, w.stop)
	}
	return ends
}

// counterLaw: the permits of slices newer than that of t less S+1 plus cost are at most L. Those of calls that wait count.
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

func (l counterLaw) newest(h history) int64 {
	var newest int64
	for _, e := range h {
		if !e.back && !e.returned {
			newest = max(newest, e.at/l.width())
		}
	}
	return newest
}

func (l counterLaw) fits(h history, t int64, q ask) bool {
	return h.sum((t/l.width()-l.slices())*l.width())+q.cost <= l.rule.Limit
}

func (l counterLaw) used(h history, t int64) int64 {
	slice := max(t/l.width(), l.newest(h))
	return h.sum((slice - l.slices()) * l.width())
}

func (l counterLaw) turns(h history, _ int64, _ ask) []int64 {
	var turns []int64
	for _, e := range h {
		turns = append(turns, (e.at/l.width()+l.slices()+1)*l.width())
	}
	return turns
}

// memberLaw: the members admitted since t-P, or since the last fire time, and one more are at most L, or the member is one of
// them.
type memberLaw struct{ rule ratelimit.Rule }

func (l memberLaw) window() string {
	return "distinct " + l.rule.Per.String() + l.rule.Cron + " " + l.rule.TZ
}
func (l memberLaw) most() int64 { return l.rule.Limit }

func (l memberLaw) since(t int64) int64 {
	if l.rule.Cron != "" {
		start, _ := calendars[l.rule.Cron+" "+l.rule.TZ].window(t)
		return start
	}
	return t - l.rule.Per.Microseconds() + 1
}

func (l memberLaw) fits(h history, t int64, q ask) bool {
	return isKnown(l, h, t, q.member) || l.used(h, t)+1 <= l.rule.Limit
}

func (l memberLaw) used(h history, t int64) int64 { return h.sum(l.since(t)) }

func (l memberLaw) turns(h history, now int64, _ ask) []int64 {
	if l.rule.Cron != "" {
		_, stop := calendars[l.rule.Cron+" "+l.rule.TZ].window(now)
		return []int64{stop}
	}
	return slidingLaw(l).turns(h, now, ask{})
}

// isKnown reports whether a member has been counted, so that it costs nothing.
func isKnown(law law, h history, t int64, member string) bool {
	l, ok := law.(memberLaw)
	return ok && slices.ContainsFunc(h, func(e event) bool {
		return e.member == member && !e.back && !e.returned && e.at >= l.since(t)
	})
}

// A calendar knows the fire times of one cron expression without reading it.
type calendar struct {
	floor func(time.Time) time.Time // the last fire time, in the calendar's zone
	after func(time.Time) time.Time // the fire time after a fire time
	zone  *time.Location
}

// window returns the fire times around t.
func (c calendar) window(t int64) (start, stop int64) {
	last := c.floor(time.UnixMicro(t).In(c.zone))
	return last.UnixMicro(), c.after(last).UnixMicro()
}
