package behaviour_test

import (
	"fmt"
	"math/big"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A law is the definition of an algorithm, for one rule.
type law interface {
	// window tells budgets of one name and key apart.
	window() string
	// most is the largest cost that can ever be admitted.
	most() int64
	// fits reports whether cost is admissible at t.
	fits(h history, t, cost int64) bool
	// turns returns the instants after now at which cost may begin to fit if nothing else is admitted.
	turns(h history, now, cost int64) []int64
}

func lawOf(r ratelimit.Rule) law {
	switch {
	case r.Cron != "":
		return calendarLaw{r, calendars[r.Cron+" "+r.TZ]}
	case r.Algorithm == ratelimit.SlidingWindow:
		return slidingLaw{r}
	case r.Algorithm == ratelimit.FixedWindow:
		return fixedLaw{r}
	case r.Algorithm == ratelimit.TokenBucket:
		return bucketLaw{r}
	}
	panic(fmt.Sprintf("the model has no law for algorithm %d", r.Algorithm))
}

// slidingLaw: the permits admitted in (t-P, t] plus cost are at most L.
type slidingLaw struct{ rule ratelimit.Rule }

func (l slidingLaw) window() string { return "sliding " + l.rule.Per.String() }
func (l slidingLaw) most() int64    { return l.rule.Limit }

func (l slidingLaw) fits(h history, t, cost int64) bool {
	return h.sum(t-l.rule.Per.Microseconds()+1, t)+cost <= l.rule.Limit
}

func (l slidingLaw) turns(h history, _, _ int64) []int64 {
	var leave []int64
	for _, e := range h {
		leave = append(leave, e.at+l.rule.Per.Microseconds())
	}
	return leave
}

// fixedLaw: the window [o, o+P) opens at the first admitted call; the permits since then plus cost are at most L.
// A return gives permits back and leaves the window open.
type fixedLaw struct{ rule ratelimit.Rule }

func (l fixedLaw) window() string { return "fixed " + l.rule.Per.String() }
func (l fixedLaw) most() int64    { return l.rule.Limit }

func (l fixedLaw) fits(h history, t, cost int64) bool {
	opened, end := l.last(h)
	if t >= end {
		return cost <= l.rule.Limit
	}
	return h.sum(opened, t)+cost <= l.rule.Limit
}

func (l fixedLaw) turns(h history, _, _ int64) []int64 {
	_, end := l.last(h)
	return []int64{end}
}

// last finds the newest window, by opening one after the other from the beginning.
func (l fixedLaw) last(h history) (opened, end int64) {
	for _, e := range h {
		if !e.back && e.at >= end {
			opened, end = e.at, e.at+l.rule.Per.Microseconds()
		}
	}
	return opened, end
}

// calendarLaw: the permits since the last fire time plus cost are at most L.
type calendarLaw struct {
	rule     ratelimit.Rule
	calendar calendar
}

func (l calendarLaw) window() string { return "cron " + l.rule.Cron + " " + l.rule.TZ }
func (l calendarLaw) most() int64    { return l.rule.Limit }

func (l calendarLaw) fits(h history, t, cost int64) bool {
	return h.sum(l.calendar.last(t), t)+cost <= l.rule.Limit
}

func (l calendarLaw) turns(_ history, now, _ int64) []int64 {
	return []int64{l.calendar.next(now)}
}

// bucketLaw: TAT + cost*P/L - B*P/L <= t, where TAT, the instant at which the bucket is full again, is
// max(TAT, admission) + cost*P/L after every admission and cost*P/L less after a return. TAT is exact; where another
// limit takes over it is kept, rounded up to a whole microsecond.
type bucketLaw struct{ rule ratelimit.Rule }

func (l bucketLaw) window() string { return "bucket " + l.rule.Per.String() }

func (l bucketLaw) most() int64 {
	if l.rule.Burst > 0 {
		return l.rule.Burst
	}
	return l.rule.Limit
}

func (l bucketLaw) fits(h history, t, cost int64) bool {
	return l.bound(h, cost).Cmp(instantOf(t)) <= 0
}

func (l bucketLaw) turns(h history, _, cost int64) []int64 {
	return []int64{roundUp(l.bound(h, cost)).Num().Int64()}
}

func (l bucketLaw) bound(h history, cost int64) *big.Rat {
	tat, limit := new(big.Rat), l.rule.Limit
	for _, e := range h {
		if e.rule.Limit != limit {
			tat, limit = roundUp(tat), e.rule.Limit
		}
		switch at := instantOf(e.at); {
		case e.back:
			tat.Sub(tat, refill(e.rule, e.cost))
		case at.Cmp(tat) > 0:
			tat.Add(at, refill(e.rule, e.cost))
		default:
			tat.Add(tat, refill(e.rule, e.cost))
		}
	}
	if l.rule.Limit != limit {
		tat = roundUp(tat)
	}
	return tat.Add(tat, refill(l.rule, cost-l.most()))
}

// refill is the time in which n permits flow into the bucket: n*P/L.
func refill(r ratelimit.Rule, n int64) *big.Rat {
	time := instantOf(r.Per.Microseconds())
	return time.Mul(time, big.NewRat(n, r.Limit))
}

func instantOf(t int64) *big.Rat { return new(big.Rat).SetInt64(t) }

func roundUp(t *big.Rat) *big.Rat {
	n := new(big.Int).Add(t.Num(), t.Denom())
	n.Sub(n, big.NewInt(1))
	return new(big.Rat).SetInt(n.Div(n, t.Denom()))
}

// A calendar knows the fire times of one cron expression without reading it.
type calendar struct {
	floor func(time.Time) time.Time // the last fire time, in the calendar's zone
	after func(time.Time) time.Time // the fire time after a fire time
	zone  *time.Location
}

func (c calendar) last(t int64) int64 { return c.floor(time.UnixMicro(t).In(c.zone)).UnixMicro() }

func (c calendar) next(t int64) int64 {
	return c.after(c.floor(time.UnixMicro(t).In(c.zone))).UnixMicro()
}
