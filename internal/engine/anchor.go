package engine

import "time"

// Every is the length of windows that begin at anchors: a number of days or of months, of which the other one is 0. A window begins at the
// anchor's day and time in the zone, or on the last day of a month that is too short.
type Every struct {
	Days, Months int
	Zone         *time.Location
}

// Anchor is a time at which windows of a subject begin, in microseconds since the year 1. 0 is none.
type Anchor int64

// yearOne is the zero time.
var yearOne = time.Time{}.UnixMicro()

// AnchorAt returns the anchor at a time of the years 1 to 9999, which is none for the zero time. For other times it reports false.
func AnchorAt(t time.Time) (Anchor, bool) {
	year := t.UTC().Year()
	return Anchor(t.UnixMicro() - yearOne), 1 <= year && year <= 9999
}

// LacksAnchor reports whether the claim knows of no window but the open one.
func (c *Claim) LacksAnchor() bool { return c.Rule.Every.Zone != nil && c.Anchor == 0 }

// Window returns the window around a time: start <= t < stop. Windows count from the anchor in both directions. Without an anchor, all times are in
// one window.
func (e *Every) Window(a Anchor, t int64) (start, stop int64) {
	if a == 0 {
		return 0, never
	}
	anchor := onWall(time.UnixMicro(int64(a) + yearOne).In(e.Zone))
	n := e.between(anchor, onWall(time.UnixMicro(t).In(e.Zone)))
	for start = e.begin(anchor, n); start > t; start = e.begin(anchor, n) {
		n--
	}
	for stop = e.begin(anchor, n+1); stop <= t; stop = e.begin(anchor, n+1) {
		start, n = stop, n+1
	}
	return start, stop
}

// between returns about how many windows are between two wall clock times. It is exact for most times.
func (e *Every) between(from, to time.Time) int {
	if e.Days > 0 {
		return int((to.Unix() - from.Unix()) / int64(e.Days*24*3600))
	}
	return (12*(to.Year()-from.Year()) + int(to.Month()-from.Month())) / e.Months
}

// begin returns when the n-th window after an anchor begins. The anchor is a wall clock time.
func (e *Every) begin(anchor time.Time, n int) int64 {
	wall := anchor.AddDate(0, 0, n*e.Days)
	if e.Months > 0 {
		year, month, day := anchor.Date()
		midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
		last := time.Date(year, month+time.Month(n*e.Months)+1, 0, 0, 0, 0, 0, time.UTC)
		wall = last.AddDate(0, 0, min(day, last.Day())-last.Day()).Add(anchor.Sub(midnight))
	}
	return instant(wall, e.Zone).UnixMicro()
}

// mostOffset is more than any zone's clock is from UTC.
const mostOffset = 26 * time.Hour

// instant returns the first time at which a zone's clock shows a wall clock time or a later one. So a time that the clock skips is the next that
// exists, and a repeated time counts once.
func instant(wall time.Time, zone *time.Location) time.Time {
	at := wall.Add(-mostOffset).In(zone)
	for {
		shows := at.Add(wall.Sub(onWall(at)))
		if shows.Before(at) {
			return at
		}
		change := nextChange(at)
		if change.IsZero() || shows.Before(change) {
			return shows
		}
		at = change
	}
}
