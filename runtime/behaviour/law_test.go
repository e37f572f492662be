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

// windowLaw: a charge at or after the end of the last window opens another one; the permits of the last window plus cost are
// at most L, from its beginning on. A trigger does not ask: before the last window it counts in the latest one that holds
// its time, or opens one there. A return gives permits back and leaves a window open that has begun; one that is still to come,
// and has nothing left, goes, so that the one before is the last again.
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
			if last < 0 {
				last = len(windows)
			}
			windows = slices.Insert(windows, last, &span{start: start, stop: stop})
		}
		windows[last].used += e.cost
		of[e.decision] = windows[last]
	}
	return windows
}

func (l windowLaw) last(h history) *span {
	windows := l.windows(h)
	return windows[len(windows)-1]
}

func (l windowLaw) fits(h history, t int64, q ask) bool {
	w := l.last(h)
	return t >= w.stop || t >= w.start && w.used+q.cost <= l.rule.Limit
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
	w := l.last(h)
	return []int64{w.start, w.stop}
}

// counterLaw: the permits of slices newer than that of t less S+1 plus cost are at most L. Nothing fits before the newest slice
// known.
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
	return t/l.width() >= l.newest(h) && l.used(h, t)+q.cost <= l.rule.Limit
}

func (l counterLaw) used(h history, t int64) int64 {
	slice := max(t/l.width(), l.newest(h))
	return h.sum((slice - l.slices()) * l.width())
}

func (l counterLaw) turns(h history, _ int64, _ ask) []int64 {
	turns := []int64{l.newest(h) * l.width()}
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
