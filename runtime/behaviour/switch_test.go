package behaviour_test

import (
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Each window begins at one of the fire times and ends at the next.
func TestFault_SwitchesMonthEndsAndLeapDays(t *testing.T) {
	tests := []struct {
		cron, zone string
		fires      []string
	}{
		// Put forward at 07:00Z from 2:00 to 3:00, and back at 06:00Z from 2:00 to 1:00.
		{"0 30 2 * * *", "America/New_York", []string{"2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		{"0 */20 2 * * *", "America/New_York", []string{"2026-03-07T07:40:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:00:00Z"}},
		{"0 30 1 * * *", "America/New_York", []string{"2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		{"0 30 * * * *", "America/New_York", []string{"2026-03-08T06:30:00Z", "2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z", "2026-03-08T08:30:00Z"}},
		{"0 30 * * * *", "America/New_York", []string{"2026-11-01T04:30:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-01T07:30:00Z"}},
		{"@daily", "America/New_York", []string{"2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z", "2026-03-10T04:00:00Z"}},
		{"@daily", "America/New_York", []string{"2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-11-03T05:00:00Z"}},
		// Put forward at 01:00Z from 2:00 to 3:00, and back at 01:00Z from 3:00 to 2:00.
		{"0 30 2 * * *", "Europe/Berlin", []string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"0 30 2 * * *", "Europe/Berlin", []string{"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"@daily", "Europe/Berlin", []string{"2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z"}},
		{"@daily", "Europe/Berlin", []string{"2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", "2026-10-26T23:00:00Z"}},
		{"@weekly", "Europe/Berlin", []string{"2026-10-17T22:00:00Z", "2026-10-24T22:00:00Z", "2026-10-31T23:00:00Z"}},
		// Put forward by half an hour at 15:30Z from 2:00, and back by half an hour at 15:00Z from 2:00.
		{"0 15 2 * * *", "Australia/Lord_Howe", []string{"2026-10-02T15:45:00Z", "2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"0 45 1 * * *", "Australia/Lord_Howe", []string{"2026-04-03T14:45:00Z", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		{"@daily", "Australia/Lord_Howe", []string{"2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z", "2026-04-06T13:30:00Z"}},
		{"@daily", "Australia/Lord_Howe", []string{"2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z", "2026-10-05T13:00:00Z"}},
		// Month ends and leap days.
		{"@monthly", "", []string{"2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z", "2027-03-01T00:00:00Z"}},
		{"@monthly", "", []string{"2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z", "2028-04-01T00:00:00Z"}},
		{"0 0 0 30 * *", "", []string{"2027-01-30T00:00:00Z", "2027-03-30T00:00:00Z"}},
		{"0 0 0 31 * *", "Europe/Berlin", []string{"2026-07-30T22:00:00Z", "2026-08-30T22:00:00Z", "2026-10-30T23:00:00Z", "2026-12-30T23:00:00Z"}},
		{"0 0 0 29 2 *", "", []string{"2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"@yearly", "America/New_York", []string{"2026-01-01T05:00:00Z", "2027-01-01T05:00:00Z"}},
	}
	for _, test := range tests {
		c := &clock{t: instant(t, test.fires[0])}
		s := inMemory(c)
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Cron: test.cron, TZ: test.zone}, Key: "k"}
		member := q
		member.Rule.Distinct, member.Member = "{who}", "a"
		for i, fire := range test.fires[1:] {
			left := instant(t, fire).Sub(c.now())
			s.admit(t, q)
			member.Member = test.fires[i]
			s.admit(t, member)
			member.Member = fire
			for _, asked := range []ratelimit.Request{q, member} {
				if d := s.refuse(t, asked); d.RetryAfter != left {
					t.Errorf("%s %s after %s: retry after %v, want %v", test.cron, test.zone, test.fires[i], d.RetryAfter, left)
				}
			}
			s.pass(left)
		}
	}
}
