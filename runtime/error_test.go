package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// The text of an error names the fields that are set.
func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		"rate limit: a cost of 2 can never be admitted: the limit is 1": &ratelimit.NeverAdmissibleError{Cost: 2, Limit: 1},
		"r: a cost of 2 can never be admitted: the limit is 1":          &ratelimit.NeverAdmissibleError{Rule: "r", Cost: 2, Limit: 1},
		"p.T.M: a cost of 2 can never be admitted: the limit is 1":      &ratelimit.NeverAdmissibleError{Method: "p.T.M", Rule: "p.T.M", Cost: 2, Limit: 1},
		"rate limit: the cost is -1":                                    &ratelimit.KeyError{Reason: "the cost is -1"},
		"p.T.M: r: doc.ID: doc is nil":                                  &ratelimit.KeyError{Method: "p.T.M", Rule: "r", Expr: "doc.ID", Reason: "doc is nil"},
		"settle: found 1 costs":                                         &ratelimit.RuleError{Argument: "settle", Reason: "found 1 costs"},
		"Slow down (retry after 1s; r: limit 3)": &ratelimit.TooManyRequestsError{ // as a client of gRPC has it
			Message: "Slow down.", RetryAfter: time.Second, Violations: []ratelimit.Violation{{Rule: "r", Limit: 3}},
		},
		"store: gone": &ratelimit.StoreError{Err: errors.New("gone")},
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

// The error of a call that costs too much says what it exceeds: the capacity of a bucket is not its limit.
func TestCostThatIsNeverAdmitted(t *testing.T) {
	l := ratelimit.New(memstore.New())
	for want, rule := range map[string]ratelimit.Rule{
		"r: a cost of 20000000 can never be admitted: the limit is 10":            {Limit: 10},
		"r: a cost of 20000000 can never be admitted: the limit is 11":            {Limit: 11, Algorithm: ratelimit.TokenBucket},
		"r: a cost of 20000000 can never be admitted: the burst is 1":             {Limit: 10, Algorithm: ratelimit.LeakyBucket},
		"r: a cost of 20000000 can never be admitted: the burst is 5":             {Limit: 10, Algorithm: ratelimit.TokenBucket, Burst: 5},
		"r: a cost of 20000000 can never be admitted: the largest debt is 864000": {Limit: 10, Algorithm: ratelimit.LeakyBucket, Prepay: true},
	} {
		rule.Name, rule.Per = "r", time.Second
		_, err := l.Allow(context.Background(), ratelimit.Request{Rule: rule, Cost: 20_000_000})
		if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); !ok || never.Error() != want {
			t.Errorf("%+v: got %v, want %s", rule, err, want)
		}
	}
}

// A call with several errors gets the first one that is about a rule or a key. Only then costs count, because those of equal rules and keys
// are added.
func TestFirstOfSeveralErrors(t *testing.T) {
	l := ratelimit.New(memstore.New())
	rule := ratelimit.Rule{Name: "r", Limit: 1, Per: time.Second, Key: "{id}"}
	never := ratelimit.Request{Rule: rule, Key: "ann", Cost: 2}
	noKey := ratelimit.Request{Rule: rule}
	negative := ratelimit.Request{Rule: rule, Key: "ann", Cost: -1}
	wrong := ratelimit.Request{Rule: ratelimit.Rule{Name: "r"}, Key: "ann"}
	for want, requests := range map[string][]ratelimit.Request{
		"can never be admitted":       {never},
		"the key is empty":            {never, noKey, negative, wrong},
		"the cost is -1":              {never, never, negative, noKey},
		"a rule needs a window":       {wrong, never, noKey},
		"a cost of 4 can never be ad": {never, never},
	} {
		if _, err := l.Allow(t.Context(), requests...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A refusal that a program makes itself may have no violations.
func TestDescribeWithoutViolations(t *testing.T) {
	made := &ratelimit.TooManyRequestsError{Message: "no"}
	if err := wrap.Describe(wrap.NewRules("m", ratelimit.PerHour(1)).On(ratelimit.New(memstore.New())), made, "other"); err != error(made) || made.Message != "no" {
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
