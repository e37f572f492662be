package engine

import (
	"sync/atomic"
	"time"
)

// Schedule tells the calendar window that holds a time. It is safe for concurrent use.
type Schedule struct {
	next   func(time.Time) time.Time // the first fire time after the given one by a clock without a zone; zero if none
	hourly bool
	Zone   *time.Location       // where its windows begin and end
	last   atomic.Pointer[span] // the window asked for last
}

type span struct{ start, stop int64 }

// NewSchedule returns the schedule whose fire times, read off a wall clock in zone, are those that next walks through in UTC.
//
// Where a clock is put forward, the fire times that it skips become one, at the end of the gap. Where it is put back, the fire
// times of the hour that comes twice count once, unless the schedule is hourly: it fires in every hour of the day.
func NewSchedule(next func(time.Time) time.Time, hourly bool, zone *time.Location) *Schedule {
	return &Schedule{next: next, hourly: hourly, Zone: zone}
}

// Window returns the fire times around t: start <= t < stop. Where there is none, it returns a far time.
func (s *Schedule) Window(t int64) (start, stop int64) {
	if w := s.last.Load(); w != nil && w.start <= t && t < w.stop {
		return w.start, w.stop
	}
	w := span{s.previous(t), s.After(t)}
	s.last.Store(&w)
	return w.start, w.stop
}

const (
	never  = 1 << 52                                             // a time in the year 2112, exact as a float
	oldest = int64(20 * 366 * 24 * time.Hour / time.Microsecond) // how far back to look for a fire time
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
		// The clock is changed first. Until then it shows the times before leaves.
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

// nextChange returns when the clock is next changed after t, or a time without effect before that; zero if it never is.
func nextChange(t time.Time) time.Time {
	_, change := t.ZoneBounds()
	if !change.IsZero() && !change.After(t) { // package time takes the last day of a leap year for one of the next year
		_, change = t.Add(24 * time.Hour).ZoneBounds()
	}
	return change
}

// shown returns what a clock shows at t, or the last second that comes twice, if t is in the second one of two equal hours.
func (s *Schedule) shown(t time.Time) time.Time {
	wall := onWall(t)
	if start, _ := t.ZoneBounds(); !s.hourly && !start.IsZero() {
		if last := onWall(start.Add(-time.Second)); wall.Before(last) {
			return last
		}
	}
	return wall
}

// onWall returns what a clock in t's zone shows at t, as a time in UTC.
func onWall(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// previous returns the last fire time that is not after t. A cron expression only tells the next one, so this looks for the
// last time from which the next fire time is not after t: first in steps that double, then by bisection.
func (s *Schedule) previous(t int64) int64 {
	fires := func(age int64) bool { return s.After(t-age) <= t }
	low, high := int64(0), int64(1) // no fire within low, one within high
	for !fires(high) {
		low, high = high, 2*high
		if high > oldest {
			return longAgo
		}
	}
	for low+1 < high {
		if middle := low + (high-low)/2; fires(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return s.After(t - high)
}
