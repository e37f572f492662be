package engine

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// civil is a day of a plain model of the calendar, which counts days and months one by one.
type civil struct{ year, month, day int }

func (c civil) daysInMonth() int {
	switch leap := c.year%4 == 0 && c.year%100 != 0 || c.year%400 == 0; {
	case c.month == 2 && leap:
		return 29
	case c.month == 2:
		return 28
	case slices.Contains([]int{4, 6, 9, 11}, c.month):
		return 30
	}
	return 31
}

// plus returns the day n days later or earlier.
func (c civil) plus(n int) civil {
	for ; n > 0; n-- {
		if c.day++; c.day > c.daysInMonth() {
			c = c.plusMonths(1)
			c.day = 1
		}
	}
	for ; n < 0; n++ {
		if c.day--; c.day == 0 {
			c.day = 1
			c = c.plusMonths(-1)
			c.day = c.daysInMonth()
		}
	}
	return c
}

// plusMonths returns the same day n months later or earlier, or the last day of that month.
func (c civil) plusMonths(n int) civil {
	for ; n > 0; n-- {
		if c.month++; c.month == 13 {
			c.year, c.month = c.year+1, 1
		}
	}
	for ; n < 0; n++ {
		if c.month--; c.month == 0 {
			c.year, c.month = c.year-1, 12
		}
	}
	c.day = min(c.day, c.daysInMonth())
	return c
}

// firstShown returns the first time at which the clock of a zone shows a day and time, or a later one. It steps through the minutes before.
func firstShown(day civil, ofDay time.Duration, zone *time.Location) int64 {
	wall := time.Date(day.year, time.Month(day.month), day.day, 0, 0, 0, 0, time.UTC).Add(ofDay)
	reached := func(at time.Time) bool { return !onWall(at.In(zone)).Before(wall) }
	at := wall.Add(-27 * time.Hour).Truncate(time.Minute)
	for _, step := range []time.Duration{time.Minute, time.Second} {
		for !reached(at.Add(step)) {
			at = at.Add(step)
		}
	}
	return at.Add(min(wall.Sub(onWall(at.In(zone))), time.Second)).UnixMicro() // clocks are changed at whole seconds
}

// drawAnchor draws an anchor, often at the end of a month, near midnight, when clocks are changed, or where a zone leaves out a day.
func drawAnchor(t *rapid.T, zone *time.Location) time.Time {
	year := rapid.OneOf(rapid.IntRange(1890, 2120), rapid.SampledFrom([]int{1900, 1969, 1970, 2000, 2011, 2024, 2026})).Draw(t, "year")
	month := time.Month(rapid.IntRange(1, 12).Draw(t, "month"))
	day := rapid.OneOf(rapid.IntRange(1, 31), rapid.IntRange(28, 31)).Draw(t, "day")
	at := time.Date(year, month, day, 0, 0, 0, 0, zone)
	at = at.Add(time.Duration(rapid.OneOf(rapid.Int64Range(0, 24*3600), rapid.Int64Range(0, 4*3600), rapid.SampledFrom([]int64{0, 1, 3600, 7200, 9000, 10800})).Draw(t, "second")) * time.Second)
	return at.Add(time.Duration(rapid.SampledFrom([]int64{0, 0, 1, 999_999}).Draw(t, "microsecond")) * time.Microsecond)
}

// Windows count from an anchor in both directions, as a plain model of days and months says: ten thousand anchors, in zones whose clocks change,
// also by parts of an hour, at midnight, and by a whole day.
func TestWindowsOfAnchors(t *testing.T) {
	var zones []*time.Location
	for _, name := range []string{
		"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Tokyo", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Monrovia",
		"Pacific/Apia", "Pacific/Kwajalein", "Asia/Manila", "Africa/Cairo",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		zones = append(zones, zone)
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 100 {
			every := Every{Zone: rapid.SampledFrom(zones).Draw(t, "zone")}
			if rapid.Bool().Draw(t, "by days") {
				every.Days = rapid.SampledFrom([]int{1, 2, 7, 14, 30, 364, 366}).Draw(t, "days")
			} else {
				every.Months = rapid.SampledFrom([]int{1, 2, 3, 6, 12, 120}).Draw(t, "months")
			}
			anchor := drawAnchor(t, every.Zone)
			bounds := near(t, anchor, every)
			for i := range len(bounds) - 1 {
				start, stop := bounds[i], bounds[i+1]
				for _, at := range []int64{start, start + 1, start + (stop-start)/2, stop - 1} {
					if start == stop {
						continue // the clock skips both times, which become one
					}
					a, ok := AnchorAt(anchor)
					if first, end := every.Window(a, at); !ok || first != start || end != stop {
						t.Fatalf("anchor %s, every %+v, at %s: from %s to %s, want %s to %s", anchor, every, show(at, every), show(first, every), show(end, every),
							show(start, every), show(stop, every))
					}
				}
			}
		}
	})
}

func show(at int64, e Every) string { return time.UnixMicro(at).In(e.Zone).Format(time.RFC3339Nano) }

// near returns when some windows of an anchor begin that follow each other, by the plain model.
func near(t *rapid.T, anchor time.Time, e Every) (bounds []int64) {
	year, month, day := anchor.Date()
	first := civil{year, int(month), day}
	wall := onWall(anchor)
	ofDay := wall.Sub(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
	most := 1200
	if e.Months > 0 {
		most = max(1, 1200/e.Months)
	}
	from := rapid.IntRange(-most, most).Draw(t, "window")
	for n := from; n < from+4; n++ {
		if e.Days > 0 {
			bounds = append(bounds, firstShown(first.plus(n*e.Days), ofDay, e.Zone))
		} else {
			bounds = append(bounds, firstShown(first.plusMonths(n*e.Months), ofDay, e.Zone))
		}
	}
	return bounds
}

// drawNearby draws an anchor of which windows end within a few days of the times at which a test decides.
func drawNearby(t *rapid.T, now int64) Anchor {
	day := rapid.SampledFrom([]int64{-3000, -40, 0, 1, 400}).Draw(t, "day of the anchor")
	hour := rapid.Int64Range(0, 23).Draw(t, "hour of the anchor")
	a, _ := AnchorAt(time.UnixMicro(now + (24*day+hour)*3600*second))
	return a
}

// hours are the steps of time in a test of windows of a day or a few days.
var hours = []int64{0, 1, 3600 * second, 5 * 3600 * second, 24 * 3600 * second, 50 * 3600 * second}

// While an anchor stays, no window of it admits more than the limit, however calls wait, give up, and are decided together with another rule.
func TestLimitOfAnAnchor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{Kind: Anchored, Every: Every{Days: rapid.IntRange(1, 3).Draw(t, "days"), Zone: time.UTC}}
		other := Rule{Kind: SlidingWindow, Per: 36 * 3600 * second}
		cells := []*Cell{new(Cell), new(Cell)}
		*cells[0], *cells[1] = NewCell(&rule), NewCell(&other)
		now, used := int64(1_000_000*second), map[int64]int64{} // by the start of the window
		anchor := drawNearby(t, now)
		const limit = 4
		for range 40 {
			now += rapid.SampledFrom(hours).Draw(t, "later")
			c := Claim{Ask: Ask{Rule: &rule, Anchor: anchor, Limit: limit, Cost: rapid.Int64Range(1, 3).Draw(t, "cost")}}
			c.Wait = rapid.SampledFrom([]int64{0, 30 * 3600 * second, 200 * 3600 * second}).Draw(t, "wait")
			call := Call{Claims: []Claim{c}}
			if rapid.IntRange(0, 2).Draw(t, "with another rule") == 0 {
				c.Rule, c.Anchor, c.Limit = &other, 0, 6
				call.Claims = append(call.Claims, c)
			}
			v := call.Decide(cells[:len(call.Claims)], now)
			if !v.Admitted {
				continue
			}
			start, _ := rule.Every.Window(anchor, v.At)
			if used[start] += c.Cost; used[start] > limit {
				t.Fatalf("%d permits are taken in the window of %d", used[start], start)
			}
			if rapid.IntRange(0, 5).Draw(t, "gives up") == 0 {
				call.Undo()
				call.Adjust(cells[:len(call.Claims)], now)
				used[start] -= c.Cost
			}
		}
	})
}

// Whatever anchors come, windows do not overlap and have no more than the limit, a window that is open keeps its end, and one that opens ends when
// one of the anchor does, or where a later one begins.
func TestAnchorsThatMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{Kind: Anchored, Every: Every{Days: rapid.IntRange(1, 3).Draw(t, "days"), Zone: time.UTC}}
		other := Rule{Kind: SlidingWindow, Per: 100 * 3600 * second} // for which calls get places that leave windows out
		cell, more, now := NewCell(&rule), NewCell(&other), int64(1_000_000*second)
		cells := []*Cell{&cell, &more}
		const limit = 3
		for range 40 {
			now += rapid.SampledFrom(hours).Draw(t, "later")
			before := (*windows)(&cell).all(now)
			c := Claim{Ask: Ask{Rule: &rule, Anchor: drawNearby(t, now), Limit: limit, Cost: rapid.Int64Range(1, 3).Draw(t, "cost")}}
			_, isOpen := (*windows)(&cell).windowFor(&c, now)
			c.Wait = rapid.SampledFrom([]int64{0, 30 * 3600 * second, 200 * 3600 * second}).Draw(t, "wait")
			call := Call{Claims: []Claim{c}}
			if rapid.IntRange(0, 2).Draw(t, "with another rule") == 0 {
				call.Claims = append(call.Claims, Claim{Ask: Ask{Rule: &other, Limit: 3, Cost: 1, Wait: c.Wait}})
			}
			v := call.Decide(cells[:len(call.Claims)], now)
			after := (*windows)(&cell).all(now)
			for i, w := range after {
				if w.start >= w.stop || w.used > limit || i > 0 && w.start < after[i-1].stop {
					t.Fatalf("the windows are %v", after)
				}
				kept := func(x window) bool { return x.stop == w.stop }
				if slices.ContainsFunc(before, kept) {
					continue
				}
				_, stop := rule.Every.Window(c.Anchor, w.start)
				if w.stop != stop && !slices.ContainsFunc(after, func(x window) bool { return x.start == w.stop }) {
					t.Fatalf("a window opens from %d to %d; one of the anchor ends at %d", w.start, w.stop, stop)
				}
			}
			if isOpen && (len(after) == 0 || after[0].stop != before[0].stop) {
				t.Fatalf("the open window was %v, and is %v", before, after)
			}
			if v.Admitted && !slices.ContainsFunc(after, func(w window) bool { return w.start <= v.At && v.At < w.stop }) {
				t.Fatalf("admitted for %d, with the windows %v", v.At, after)
			}
		}
	})
}

// all returns the windows that have not ended.
func (w *windows) all(now int64) (all []window) {
	for i := range w.len() {
		if x := w.at(i); x.stop > now {
			all = append(all, x)
		}
	}
	return all
}

// The state of members keeps its window, too: it admits no more than the limit while the window is open, whatever anchors come, and all of it after.
func TestMembersOfAnAnchor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{Kind: DistinctAnchored, Every: Every{Days: rapid.IntRange(1, 3).Draw(t, "days"), Zone: time.UTC}}
		cell, now, stop := NewCell(&rule), int64(1_000_000*second), int64(0)
		known := map[string]bool{}
		const limit = 3
		for range 60 {
			now += rapid.SampledFrom(hours).Draw(t, "later")
			c := Claim{Ask: Ask{Rule: &rule, Anchor: drawNearby(t, now), Limit: limit, Cost: 1}}
			c.Member = rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "member")
			if now >= stop {
				_, stop = rule.Every.Window(c.Anchor, now)
				clear(known)
			}
			call := Call{Claims: []Claim{c}, Report: true}
			v := call.Decide([]*Cell{&cell}, now)
			if want := known[c.Member] || len(known) < limit; v.Admitted != want {
				t.Fatalf("a member among %v is admitted: %t", known, v.Admitted)
			}
			if v.Admitted {
				known[c.Member] = true
			}
			if got := call.Claims[0]; got.Room != limit-int64(len(known)) || got.Full != stop {
				t.Fatalf("room for %d until %d, with %v until %d", got.Room, got.Full, known, stop)
			}
		}
	})
}

// An anchor is a time of the years 1 to 9999. The zero time is none.
func TestAnchorAt(t *testing.T) {
	for year, want := range map[int]bool{-300_000: false, 0: false, 1: true, 1969: true, 9999: true, 10_000: false, 300_000: false} {
		at := time.Date(year, time.July, 1, 0, 0, 0, 1000, time.UTC)
		a, ok := AnchorAt(at)
		if ok != want || ok && time.UnixMicro(int64(a)+yearOne).UTC() != at {
			t.Errorf("%s is %d, %t", at, a, ok)
		}
	}
	if a, ok := AnchorAt(time.Time{}); a != 0 || !ok {
		t.Errorf("the zero time is %d, %t", a, ok)
	}
}
