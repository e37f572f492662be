package engine

import (
	"sort"
	"sync/atomic"
	"time"
)

// Schedule computes the calendar window that contains a time. It is safe for concurrent use.
type Schedule struct {
	next   func(time.Time) time.Time // returns the next fire time, as wall clock times in UTC; zero if there is none
	hourly bool
	Zone   *time.Location       // the time zone of the windows
	last   atomic.Pointer[span] // the window that was computed last
}

type span struct{ start, stop int64 }

// NewSchedule returns a schedule in a time zone. next returns the first fire time after a given time; both are wall clock times, as a
// [time.Time] in UTC. Fire times are whole seconds.
//
// When the clock is put forward, the fire times that it skips become one, at the end of the gap. When it is put back, the fire times of the
// repeated hour count once. They count twice if hourly is true: the schedule then fires in every hour of the day.
func NewSchedule(next func(time.Time) time.Time, hourly bool, zone *time.Location) *Schedule {
	return &Schedule{next: next, hourly: hourly, Zone: zone}
}

// Window returns the fire times around t: start <= t < stop. If there is none on a side, it returns a far time there.
func (s *Schedule) Window(t int64) (start, stop int64) {
	if w := s.last.Load(); w != nil && w.start <= t && t < w.stop {
		return w.start, w.stop
	}
	w := span{s.previous(t), s.After(t)}
	s.last.Store(&w)
	return w.start, w.stop
}

const (
	never  = 1 << 52              // a time in the year 2112, exact as a float
	oldest = 20 * 366 * 24 * 3600 // how far back to look for a fire time, in seconds
)

// After returns the first fire time after t, or a far time if there is none.
func (s *Schedule) After(t int64) int64 {
	at := time.UnixMicro(t).In(s.Zone)
	wall := s.shown(at)
	for {
		fire := s.next(wall)
		if fire.IsZero() {
			return never
		}
		change := nextChange(at)
		instant := at.Add(fire.Sub(onWall(at)))
		if change.IsZero() || instant.Before(change) {
			return instant.UnixMicro()
		}
		// The clock changes before the next fire time. Until the change it shows times before leaves.
		leaves := onWall(change.Add(-time.Second)).Add(time.Second)
		enters := onWall(change)
		if enters.After(leaves) && fire.Before(enters) {
			return change.UnixMicro()
		}
		at, wall = change, enters.Add(-time.Second)
		if enters.Before(leaves) && !s.hourly {
			wall = leaves.Add(-time.Second)
		}
	}
}

// nextChange returns when the clock is next changed after t, or a time between t and that change. It returns zero if the clock is never changed
// again.
func nextChange(t time.Time) time.Time {
	_, change := t.ZoneBounds()
	if !change.IsZero() && !change.After(t) { // package time counts the last day of a leap year to the next year
		_, change = t.Add(24 * time.Hour).ZoneBounds()
	}
	return change
}

// shown returns the wall clock time at t. If t is in the second of two equal hours, it returns the last second of that hour, unless the
// schedule is hourly.
func (s *Schedule) shown(t time.Time) time.Time {
	wall := onWall(t)
	if start, _ := t.ZoneBounds(); !s.hourly && !start.IsZero() {
		if last := onWall(start.Add(-time.Second)); wall.Before(last) {
			return last
		}
	}
	return wall
}

// onWall returns the wall clock time at t in t's zone, as a time in UTC.
func onWall(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// previous returns the last fire time that is not after t. A cron expression only gives the next fire time. So previous searches for the last
// second in which there was one: first in doubling steps, then by bisection.
func (s *Schedule) previous(t int64) int64 {
	since := func(age int) int64 { return s.After(t - int64(age)*1_000_000) }
	far := 1
	for since(far) > t {
		if far *= 2; far > oldest {
			return longAgo
		}
	}
	return since(sort.Search(far, func(age int) bool { return since(age) <= t }))
}
