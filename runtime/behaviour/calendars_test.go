package behaviour_test

import (
	"strings"
	"time"
	_ "time/tzdata" // for systems without zone files

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// calendars are the cron expressions that the model understands, with their zones, and the periods whose windows count from anchorOf.
var calendars = map[string]calendar{
	"* * * * * * ":                        every(time.Second),
	"*/5 * * * * * UTC":                   every(5 * time.Second),
	"0 * * * * ? ":                        every(time.Minute),
	"*/10 * * * * ":                       every(10 * time.Minute),
	"@hourly ":                            every(time.Hour),
	"0 0 0 * * * Asia/Shanghai":           days("Asia/Shanghai"),
	"@daily America/New_York":             days("America/New_York"),
	"0 0 0 * * * Australia/Lord_Howe":     days("Australia/Lord_Howe"),
	"0 0 * * 1 Europe/Berlin":             weeks("Europe/Berlin"),
	"0 0 0 1 * * America/Argentina/Salta": months("America/Argentina/Salta"),
	"every 1d America/New_York":           days("America/New_York"),
	"every 1w Europe/Berlin":              weeks("Europe/Berlin"),
	"every 1mo Asia/Shanghai":             monthEnds("Asia/Shanghai"),
}

// isCalendar reports whether the windows of a rule are those of a calendar.
func isCalendar(r ratelimit.Rule) bool { return r.Cron != "" || r.Every != "" }

// calendarOf returns the calendar of a rule.
func calendarOf(r ratelimit.Rule) calendar {
	if r.Every != "" {
		return calendars["every "+r.Every+" "+r.TZ]
	}
	return calendars[r.Cron+" "+r.TZ]
}

// anchorOf returns the anchor of all calls of a rule in a walk: midnight of a Monday, or of the last day of a month. Other rules have none.
func anchorOf(r ratelimit.Rule) time.Time {
	if r.Every == "" {
		return time.Time{}
	}
	day := 1
	if strings.HasSuffix(r.Every, "mo") {
		day = 31
	}
	return time.Date(2024, time.January, day, 0, 0, 0, 0, calendarOf(r).zone)
}

// monthEnds returns a calendar whose windows begin at the midnight before the last day of each month.
func monthEnds(zone string) calendar {
	last := func(t time.Time, months int) time.Time {
		return time.Date(t.Year(), t.Month()+time.Month(1+months), 0, 0, 0, 0, 0, t.Location())
	}
	c := months(zone)
	c.floor = func(t time.Time) time.Time {
		if end := last(t, 0); t.Before(end) {
			return last(t, -1)
		}
		return last(t, 0)
	}
	c.after = func(fire time.Time) time.Time { return last(fire, 1) }
	return c
}

// every returns a calendar with windows of the given length. A day in UTC must consist of a whole number of them.
func every(step time.Duration) calendar {
	return calendar{
		floor: func(t time.Time) time.Time { return t.Truncate(step) },
		after: func(fire time.Time) time.Time { return fire.Add(step) },
		zone:  time.UTC,
	}
}

func days(zone string) calendar {
	return dates(zone, func(t time.Time) int { return t.Day() }, 0, 1)
}

// weeks returns a calendar of weeks, which begin on Mondays.
func weeks(zone string) calendar {
	return dates(zone, func(t time.Time) int { return t.Day() - (int(t.Weekday())+6)%7 }, 0, 7)
}

func months(zone string) calendar {
	return dates(zone, func(time.Time) int { return 1 }, 1, 0)
}

// dates returns a calendar whose windows begin at midnight. first returns the day of the month on which the window of a time begins.
func dates(zone string, first func(time.Time) int, months, days int) calendar {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	midnight := func(t time.Time, day int) time.Time {
		return time.Date(t.Year(), t.Month(), day, 0, 0, 0, 0, loc)
	}
	return calendar{
		floor: func(t time.Time) time.Time { return midnight(t, first(t)) },
		after: func(fire time.Time) time.Time { return fire.AddDate(0, months, days) },
		zone:  loc,
	}
}
