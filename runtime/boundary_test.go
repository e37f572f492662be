package ratelimit

import (
	"slices"
	"testing"
	"time"
)

func TestBoundaries(t *testing.T) {
	for name, c := range map[string]struct {
		rule  Rule
		now   string
		wants []string
	}{
		"midnights": {Rule{Limit: 1, Cron: "@daily"}, "2026-11-21T12:00:00Z",
			[]string{"2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z"}},
		"a boundary has passed at its own time": {Rule{Limit: 1, Cron: "@daily"}, "2026-11-22T00:00:00Z",
			[]string{"2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z", "2026-11-25T00:00:00Z"}},
		"a zone with a switch": {Rule{Limit: 1, Cron: "0 0 * * *", TZ: "Europe/Berlin"}, "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", "2026-10-27T00:00:00+01:00"}},
		"leap days, which come within five years": {Rule{Limit: 1, Cron: "0 0 29 2 *"}, "2026-11-21T12:00:00Z",
			[]string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z", "2036-02-29T00:00:00Z"}},
		"a leap day that is too far": {Rule{Limit: 1, Cron: "0 0 29 2 *"}, "2096-02-28T12:00:00Z",
			[]string{"2096-02-29T00:00:00Z"}},
		"no calendar": {Rule{Limit: 1, Per: time.Minute}, "2026-11-21T12:00:00Z", nil},
	} {
		t.Run(name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, c.now)
			if err != nil {
				t.Fatal(err)
			}
			ends, err := c.rule.Boundaries(now, 3)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, e := range ends {
				found = append(found, e.Format(time.RFC3339))
			}
			if !slices.Equal(found, c.wants) {
				t.Errorf("found %v, expected %v", found, c.wants)
			}
		})
	}
}

func TestBoundariesOfInvalidRules(t *testing.T) {
	for _, r := range []Rule{{Limit: -1, Cron: "@daily"}, {Limit: 1, Cron: "never"}, {Limit: 1, Cron: "@daily", TZ: "Nowhere"}, {}} {
		if ends, err := r.Boundaries(time.Now(), 3); err == nil {
			t.Errorf("%+v: found %v, expected an error", r, ends)
		}
	}
}
