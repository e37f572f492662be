package engine

import (
	"testing"
	"time"
	_ "time/tzdata" // for systems without zone files

	"pgregory.net/rapid"
)

// daily is a schedule that fires at certain minutes of each day.
type daily struct {
	minutes map[int]bool
	hourly  bool
}

func (d daily) has(wall time.Time) bool { return d.minutes[wall.Hour()*60+wall.Minute()] }

func (d daily) next(t time.Time) time.Time {
	for t = t.Truncate(time.Minute).Add(time.Minute); !d.has(t); t = t.Add(time.Minute) {
	}
	return t
}

// fires returns the fire times between two times. It steps through the minutes and reads the wall clock at each.
func (d daily) fires(from, to time.Time) (fires []int64) {
	last := onWall(from)
	for t := from.Add(time.Minute); t.Before(to); t = t.Add(time.Minute) {
		wall := onWall(t)
		fire := d.has(wall) && (d.hourly || wall.After(last)) // otherwise the clock showed this time before
		for skipped := last.Add(time.Minute); skipped.Before(wall); skipped = skipped.Add(time.Minute) {
			fire = fire || d.has(skipped)
		}
		if fire {
			fires = append(fires, t.UnixMicro())
		}
		if wall.After(last) || d.hourly {
			last = wall
		}
	}
	return fires
}

func drawDaily(t *rapid.T) daily {
	d := daily{minutes: map[int]bool{}, hourly: rapid.Bool().Draw(t, "hourly")}
	if d.hourly {
		for _, minute := range rapid.SliceOfN(rapid.IntRange(0, 59), 1, 3).Draw(t, "minutes of each hour") {
			for hour := range 24 {
				d.minutes[hour*60+minute] = true
			}
		}
		return d
	}
	early := rapid.IntRange(0, 4*60-1) // when clocks are changed
	for _, minute := range rapid.SliceOfN(rapid.OneOf(early, rapid.IntRange(0, 24*60-1)), 1, 4).Draw(t, "minutes") {
		d.minutes[minute] = true
	}
	return d
}

// Around every change of the clock, windows begin and end at the fire times that an observer of the wall clock would note.
func TestWindowsAroundSwitches(t *testing.T) {
	switches := map[string][]string{
		"America/New_York":    {"2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"},
		"Europe/Berlin":       {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"},
		"Australia/Lord_Howe": {"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"},
		"America/Sao_Paulo":   {"2018-11-04T03:00:00Z", "2018-02-18T02:00:00Z"}, // at midnight
	}
	for name, times := range switches {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range times {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			if _, before := at.Add(-time.Second).In(zone).Zone(); before == offset(at, zone) {
				t.Fatalf("%s: no switch at %s", name, text)
			}
			t.Run(name+" "+text, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					d := drawDaily(t)
					fires := d.fires(at.Add(-50*time.Hour).In(zone), at.Add(50*time.Hour).In(zone))
					requireWindows(t, NewSchedule(d.next, d.hourly, zone), fires)
				})
			})
		}
	}
}

func offset(t time.Time, zone *time.Location) int {
	_, offset := t.In(zone).Zone()
	return offset
}

func requireWindows(t *rapid.T, s *Schedule, fires []int64) {
	i := rapid.IntRange(0, len(fires)-2).Draw(t, "window")
	within := rapid.OneOf(rapid.SampledFrom([]int64{0, 1, fires[i+1] - fires[i] - 1}), rapid.Int64Range(0, fires[i+1]-fires[i]-1))
	at := fires[i] + within.Draw(t, "within")
	if start, stop := s.Window(at); start != fires[i] || stop != fires[i+1] {
		t.Fatalf("the window of %s is from %s to %s, want from %s to %s",
			clockTime(at, s), clockTime(start, s), clockTime(stop, s), clockTime(fires[i], s), clockTime(fires[i+1], s))
	}
}

func clockTime(t int64, s *Schedule) time.Time { return time.UnixMicro(t).In(s.Zone) }

// Windows are right at the end of leap years for which a zone has a rule instead of a table of changes.
func TestWindowsAtTheEndOfLeapYears(t *testing.T) {
	for _, name := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		midnights := NewSchedule(daily{minutes: map[int]bool{0: true}}.next, false, zone)
		for _, year := range []int{2028, 2040, 2044} { // tables end in 2037, or where the rule began
			for day := 28; day < 36; day++ {
				from, to := time.Date(year, time.December, day, 0, 0, 0, 0, zone), time.Date(year, time.December, day+1, 0, 0, 0, 0, zone)
				for at := from; at.Before(to); at = at.Add(time.Hour) {
					if start, stop := midnights.Window(at.UnixMicro()); start != from.UnixMicro() || stop != to.UnixMicro() {
						t.Errorf("the day of %s is from %s to %s", at, clockTime(start, midnights), clockTime(stop, midnights))
					}
				}
			}
		}
	}
}

// Monthly windows have the right number of days, in leap years, too.
func TestWindowsOfMonths(t *testing.T) {
	for _, name := range []string{"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Shanghai"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		firsts, leapDays := NewSchedule(nextFirst, false, zone), NewSchedule(nextLeapDay, false, zone)
		for year := 2024; year < 2033; year++ {
			for month := time.January; month <= time.December; month++ {
				from, to := time.Date(year, month, 1, 0, 0, 0, 0, zone), time.Date(year, month+1, 1, 0, 0, 0, 0, zone)
				for _, at := range []int64{from.UnixMicro(), from.UnixMicro() + 1, to.UnixMicro() - 1} {
					if start, stop := firsts.Window(at); start != from.UnixMicro() || stop != to.UnixMicro() {
						t.Errorf("the month of %s is from %s to %s", clockTime(at, firsts), clockTime(start, firsts), clockTime(stop, firsts))
					}
				}
			}
			leap := year - year%4
			from, to := time.Date(leap, time.February, 29, 0, 0, 0, 0, zone), time.Date(leap+4, time.February, 29, 0, 0, 0, 0, zone)
			at := time.Date(year, time.March, 1, 0, 0, 0, 0, zone).UnixMicro()
			if start, stop := leapDays.Window(at); start != from.UnixMicro() || stop != to.UnixMicro() {
				t.Errorf("the leap days around %s are %s and %s",
					clockTime(at, leapDays), clockTime(start, leapDays), clockTime(stop, leapDays))
			}
		}
	}
}

func nextFirst(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}

func nextLeapDay(t time.Time) time.Time {
	for year := t.Year(); ; year++ {
		if day := time.Date(year, time.February, 29, 0, 0, 0, 0, time.UTC); day.Day() == 29 && day.After(t) {
			return day
		}
	}
}

// A schedule whose fire times have all passed, or are all to come, has windows without an end or a start.
func TestWindowsWithoutEnd(t *testing.T) {
	only := time.Date(2026, time.May, 1, 0, 0, 0, 0, time.UTC)
	s := NewSchedule(func(t time.Time) time.Time {
		if t.Before(only) {
			return only
		}
		return time.Time{}
	}, false, time.UTC)
	if start, stop := s.Window(only.UnixMicro()); start != only.UnixMicro() || stop != never {
		t.Errorf("from %d to %d", start, stop)
	}
	if start, stop := s.Window(only.UnixMicro() - 1); start != longAgo || stop != only.UnixMicro() {
		t.Errorf("before: from %d to %d", start, stop)
	}
}

// A time that fired in the first of two equal hours does not fire again in the second.
func TestHourThatComesTwice(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	s := NewSchedule(daily{minutes: map[int]bool{60 + 20: true}}.next, false, zone)
	start, stop := time.Date(2026, time.November, 1, 5, 20, 0, 0, time.UTC), time.Date(2026, time.November, 2, 6, 20, 0, 0, time.UTC)
	for at := start; at.Before(stop); at = at.Add(10 * time.Minute) {
		if from, to := s.Window(at.UnixMicro()); from != start.UnixMicro() || to != stop.UnixMicro() {
			t.Fatalf("at %s: from %s to %s", at, clockTime(from, s), clockTime(to, s))
		}
		s = NewSchedule(s.next, false, zone) // a new one remembers no window
	}
}
