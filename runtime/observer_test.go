package ratelimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Every decision takes the one exit to the observers, and Peek does not.
func TestObserversSeeEveryDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, second []string
		see := func(to *[]string) ratelimit.Option {
			return ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
				*to = append(*to, fmt.Sprintf("%s %d %v", e.Kind, len(e.Rules), e.Err != nil))
			})
		}
		l := ratelimit.New(memstore.New(), see(&first), see(&second))
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour}, Key: "k"}
		ctx := t.Context()
		d, _ := l.Allow(ctx, q)
		_, _ = l.Peek(ctx, q)
		_, _ = l.Allow(ctx, q)
		_ = d.Refund(ctx)
		_ = d.Refund(ctx)
		_, _ = l.Allow(ctx, ratelimit.Request{Rule: q.Rule, Key: "k", Cost: -1})
		_, _ = l.Allow(ctx)
		_ = wrap.Take(ctx, l, wrap.NewRules("p.T.M", q.Rule), "k")
		short, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Minute, cancel)
		_, _ = l.Wait(short, q)
		want := []string{"admitted 1 false", "refused 1 false", "refunded 0 false", "failed 0 true", "failed 0 true", "admitted 1 false", "abandoned 0 true"}
		if !slices.Equal(first, want) || !slices.Equal(second, want) {
			t.Errorf("got\n%q\n%q, want\n%q", first, second, want)
		}
	})
}

// A rule of limit 0 refuses with its message, and says that to retry is pointless.
func TestNever(t *testing.T) {
	l := ratelimit.New(memstore.New())
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Limit: 5, Per: time.Minute}, ratelimit.Rule{Key: "{x}", Per: time.Minute, Message: "Closed."})
	err := wrap.Take(t.Context(), l, rules, "k", "k")
	refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
	if !ok || !refusal.Never || refusal.Message != "Closed." || refusal.RetryAfter != 0 || len(refusal.Violations) != 1 {
		t.Fatalf("got %+v", err)
	}
	if v := refusal.Violations[0]; !v.Never || v.Rule != "p.T.M#2" {
		t.Errorf("got %+v", v)
	}
	if want := "p.T.M: Closed (never admitted; p.T.M#2: 0 per minute for \"k\")"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if err := wrap.Describe(err, "first", "Closed for ann."); refusal.Message != "Closed for ann." {
		t.Errorf("got %v", err)
	}
}

// Whatever a caller sends, an error is one line of at most a kilobyte, in a log and as JSON too.
func TestErrorsAreOneLine(t *testing.T) {
	long := strings.Repeat("a\n\x1b\u202e", 1000)
	for _, err := range []error{
		&ratelimit.TooManyRequestsError{Method: "p.T.M", Message: long, RetryAfter: time.Minute, Violations: []ratelimit.Violation{{Key: long}}},
		&ratelimit.NeverAdmissibleError{Rule: long}, &ratelimit.StoreError{Err: errors.New(long)},
		&ratelimit.KeyError{Reason: long, Err: errors.New(long)}, &ratelimit.RuleError{Reason: long},
	} {
		if s := err.Error(); len(s) > 1024 || strings.ContainsAny(s, "\n\x1b\u202e") {
			t.Errorf("%T: %d bytes, %.100q", err, len(s), s)
		}
		if _, ok := err.(slog.LogValuer); !ok {
			t.Errorf("%T is no slog.LogValuer", err)
		}
		if b, err := json.Marshal(err); err != nil || !json.Valid(b) {
			t.Errorf("%s, error %v", b, err)
		}
	}
	refusal := &ratelimit.TooManyRequestsError{Message: "No.", RetryAfter: 90 * time.Second, Violations: []ratelimit.Violation{{Rule: "r", Window: "1m", Limit: 2, RetryAfter: 90 * time.Second}}}
	want := `{"message":"No.","retry_after":"1m30s","violations":[{"rule":"r","window":"1m","limit":2,"remaining":0,"retry_after":"1m30s"}]}`
	if b, err := json.Marshal(refusal); string(b) != want || err != nil {
		t.Errorf("got %s, error %v", b, err)
	}
}

// Messages for people say windows in words.
func TestWindowsInWords(t *testing.T) {
	for rule, want := range map[ratelimit.Rule]string{
		{Limit: 10, Per: time.Minute}:                                       "10 per minute",
		{Limit: 10, Per: time.Minute, Algorithm: ratelimit.LeakyBucket}:     "10 per minute (leaky-bucket)",
		{Limit: 1, Per: 90 * time.Second, Algorithm: ratelimit.FixedWindow}: "1 per 1m30s (fixed-window)",
		{Limit: 5, Per: time.Hour, Algorithm: ratelimit.SlidingCounter}:     "5 per hour (sliding-counter)",
		{Limit: 5, Cron: "@daily", TZ: "Asia/Shanghai"}:                     "5 per calendar day (Asia/Shanghai)",
		{Limit: 5, Cron: "0 6 * * *"}:                                       "5 per period of cron 0 6 * * *",
		{Limit: 5, Per: time.Hour, Distinct: "{who}"}:                       "5 different ones per hour",
	} {
		if got := (ratelimit.Violation{Limit: rule.Limit, Window: rule.Window()}).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNilPanics(t *testing.T) {
	for want, f := range map[string]func(){
		"ratelimit.New: the store is nil":                                          func() { ratelimit.New(nil) },
		"ratelimit.WithObserver: the function is nil":                              func() { ratelimit.WithObserver(nil) },
		"ratelimit.WithLogger: the logger is nil":                                  func() { ratelimit.WithLogger(nil) },
		"ratelimit.WithTrigger: the function is nil":                               func() { ratelimit.WithTrigger(nil) },
		"ratelimit.WithSubjectHash: the secret has 31 bytes; expected at least 32": func() { ratelimit.WithSubjectHash(make([]byte, 31)) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %q", got, want)
				}
			}()
			f()
		}()
	}
}
