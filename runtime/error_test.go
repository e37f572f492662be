package runtime_test

import (
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// An error names what there is to name.
func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		"rate limit: a cost of 2 can never be admitted: the limit is 1": &ratelimit.NeverAdmissibleError{Cost: 2, Limit: 1},
		"r: a cost of 2 can never be admitted: the limit is 1":          &ratelimit.NeverAdmissibleError{Rule: "r", Cost: 2, Limit: 1},
		"p.T.M: a cost of 2 can never be admitted: the limit is 1":      &ratelimit.NeverAdmissibleError{Method: "p.T.M", Rule: "p.T.M", Cost: 2, Limit: 1},
		"rate limit: the cost is -1":                                    &ratelimit.KeyError{Reason: "the cost is -1"},
		"p.T.M: r: doc.ID: doc is nil":                                  &ratelimit.KeyError{Method: "p.T.M", Rule: "r", Expr: "doc.ID", Reason: "doc is nil"},
		"store: gone":                                                   &ratelimit.StoreError{Err: errors.New("gone")},
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

// A refusal that somebody else made up may have no violations.
func TestDescribeWithoutViolations(t *testing.T) {
	made := &ratelimit.TooManyRequestsError{Message: "no"}
	if err := ratelimit.Describe(made, "other"); err != error(made) || made.Message != "no" {
		t.Errorf("got %v", err)
	}
}

func TestRulesOfAPeriod(t *testing.T) {
	for per, rule := range map[time.Duration]ratelimit.Rule{
		time.Second: ratelimit.PerSecond(3), time.Minute: ratelimit.PerMinute(3),
		time.Hour: ratelimit.PerHour(3), 24 * time.Hour: ratelimit.PerDay(3),
	} {
		if want := (ratelimit.Rule{Limit: 3, Per: per}); rule != want {
			t.Errorf("got %+v, want %+v", rule, want)
		}
	}
}
