// Package calendar compares the windows of rules that have a cron expression, as they are on any date. It knows neither the
// counts of rules nor a clock; which expressions are valid is for ratelimit.Rule.Validate to say.
package calendar

import (
	"cmp"
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Within reports that each window of inner lies in one window of outer. That is certain if both are in one zone and each fire
// time of outer is one of inner: a change of the clock, too, then moves or doubles none of outer's alone. Of rules that are not
// valid it is false.
func Within(inner, outer ratelimit.Rule) bool {
	fine, ok := parse(inner)
	coarse, okToo := parse(outer)
	return ok && okToo && zone(inner) == zone(outer) &&
		isSubset(coarse.Second, fine.Second) && isSubset(coarse.Minute, fine.Minute) && isSubset(coarse.Hour, fine.Hour) &&
		daysWithin(coarse, fine)
}

// Same reports that the rules have the same windows, however they spell them.
func Same(a, b ratelimit.Rule) bool { return Within(a, b) && Within(b, a) }

// change is by how much at most the clocks of a rule's zone are put forward or back.
func change(r ratelimit.Rule) time.Duration {
	if zone(r) == "UTC" {
		return 0
	}
	return 12 * time.Hour
}

// Shortest returns what each window of a rule lasts at least. It is not known of one that fires more than once on a day.
func Shortest(r ratelimit.Rule) (length time.Duration, ok bool) {
	s, ok := parse(r)
	once := ok && bits.OnesCount64(s.Second&^star)+bits.OnesCount64(s.Minute&^star)+bits.OnesCount64(s.Hour&^star) == 3
	return 24*time.Hour - change(r), once // if the next fire time is skipped, the window ends as the clock is put forward
}

// Longest returns what each window of a rule lasts at most. It is not known of one that does not fire every day.
func Longest(r ratelimit.Rule) (length time.Duration, ok bool) {
	s, ok := parse(r)
	switch {
	case !ok || !daysWithin(&cron.SpecSchedule{Dom: all, Month: all, Dow: all}, s):
		return 0, false
	case isSubset(1<<24-1, s.Hour): // which fires in both of two equal hours
		return 2 * time.Hour, true
	}
	return 24*time.Hour + change(r), true
}

// zone names a time zone; two names of one zone are not known to be the same.
func zone(r ratelimit.Rule) string { return cmp.Or(r.TZ, "UTC") }

var parser = cron.NewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// parse reads the cron expression of a rule as package runtime does.
func parse(r ratelimit.Rule) (*cron.SpecSchedule, bool) {
	if r.Validate() != nil || r.Cron == "" {
		return nil, false
	}
	schedule, err := parser.Parse(r.Cron)
	spec, ok := schedule.(*cron.SpecSchedule)
	return spec, err == nil && ok
}

// star is set in a field that is written with a star. Such a field has all other bits as well.
const star = 1 << 63

const all = 1<<64 - 1

func isSubset(a, b uint64) bool { return a&^b&^star == 0 }

// daysWithin reports that b fires on each day on which a does. Every date falls on every day of the week, in some year.
func daysWithin(a, b *cron.SpecSchedule) bool {
	lengths := [...]int{1: 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for month := 1; month <= 12; month++ {
		for day := 1; day <= lengths[month]; day++ {
			for weekday := range 7 {
				if firesOn(a, month, day, weekday) && !firesOn(b, month, day, weekday) {
					return false
				}
			}
		}
	}
	return true
}

// firesOn reports whether s fires on a day. As in crontab, one of the two fields of the day is enough if neither has a star.
func firesOn(s *cron.SpecSchedule, month, day, weekday int) bool {
	byDay, byWeekday := s.Dom&(1<<day) != 0, s.Dow&(1<<weekday) != 0
	either := (s.Dom|s.Dow)&star == 0
	return s.Month&(1<<month) != 0 && (byDay && byWeekday || either && (byDay || byWeekday))
}
