package limittest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// RequireAllowed ends the test if err is a refusal or any other error.
func RequireAllowed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("expected that the call is allowed; got %v", err)
	}
}

// RequireRefused ends the test unless err is or wraps a refusal, and all the given rules are among those that refused. It returns the
// refusal, so that the test can check its message and delay.
func RequireRefused(t testing.TB, err error, rules ...string) *ratelimit.TooManyRequestsError {
	t.Helper()
	refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
	if !ok {
		t.Fatalf("expected a refusal%s; got %v", by(rules), err)
		return nil // if t is a fake
	}
	var refusing []string
	for _, v := range refusal.Violations {
		refusing = append(refusing, v.Rule)
	}
	for _, rule := range rules {
		if !slices.Contains(refusing, rule) {
			t.Fatalf("expected a refusal%s; got one%s", by(rules), by(refusing))
		}
	}
	return refusal
}

func by(rules []string) string {
	if len(rules) == 0 {
		return ""
	}
	return " by " + strings.Join(rules, " and ")
}

// most is the largest number of calls that Exhaust makes.
const most = 1_000_000

// Exhaust repeats a call until it is refused, and returns how often it was admitted. It ends the test on any other error, and after a million
// calls. The rules of the call must not have wait=: the call would sleep on a clock that nobody moves.
func Exhaust(t testing.TB, call func() error) int {
	t.Helper()
	for n := range most {
		switch err := call(); {
		case errors.Is(err, ratelimit.ErrTooManyRequests):
			return n
		case err != nil:
			t.Fatalf("expected that the call is allowed or refused; got %v", err)
			return n // if t is a fake
		}
	}
	t.Fatalf("expected a refusal; got none in %d calls", most)
	return most
}
