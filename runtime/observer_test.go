package ratelimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Observers see every decision once, and no Peek.
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
		rules := wrap.NewRules("p.T.M", q.Rule)
		_ = wrap.Take(ctx, rules.On(l), rules, "k")
		short, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Minute, cancel)
		_, _ = l.Wait(short, q)
		want := []string{"admitted 1 false", "refused 1 false", "refunded 1 false", "failed 1 true", "failed 0 true", "admitted 1 false", "abandoned 1 true"}
		if !slices.Equal(first, want) || !slices.Equal(second, want) {
			t.Errorf("got\n%q\n%q, want\n%q", first, second, want)
		}
	})
}

// A call gives the same event with a report and without one.
func TestObserversSeeReportedCallsAlike(t *testing.T) {
	var events []ratelimit.Event
	l := ratelimit.New(memstore.New(), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		seen := *e
		seen.Rules, seen.Took = slices.Clone(e.Rules), 0
		events = append(events, seen)
	}))
	for _, rule := range []ratelimit.Rule{
		{Limit: 1000, Per: time.Hour}, {Name: "n", Limit: 1000, Per: time.Hour, Key: "{k}", Algorithm: ratelimit.TokenBucket, Burst: 2000},
		{Limit: 1000, Cron: "@daily", Scope: ratelimit.ScopeInstance},
	} {
		rules, subject := wrap.NewRules("p.T.M", rule), rule.Key
		long, _ := ratelimit.WithReport(t.Context())
		for range 3 {
			events = nil
			for _, ctx := range []context.Context{t.Context(), long} {
				if err := wrap.Take(ctx, rules.On(l), rules, subject); err != nil {
					t.Fatal(err)
				}
			}
			if len(events) != 2 || !reflect.DeepEqual(events[0], events[1]) {
				t.Errorf("got %+v", events)
			}
		}
	}
}

// A rule of limit 0 refuses with its message, and its refusal says that retrying is pointless.
func TestNever(t *testing.T) {
	l := ratelimit.New(memstore.New())
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Limit: 5, Per: time.Minute}, ratelimit.Rule{Key: "{x}", Per: time.Minute, Message: "Closed."})
	err := wrap.Take(t.Context(), rules.On(l), rules, "k", "k")
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
	if err := wrap.Describe(rules.On(l), err, "first", "Closed for ann."); refusal.Message != "Closed for ann." {
		t.Errorf("got %v", err)
	}
}

// Whatever a caller sends, the text of an error is one line of at most a kilobyte, and so is each of its texts in a log. Its JSON is valid.
func TestErrorsAreOneLine(t *testing.T) {
	piece := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a\x00-\x1f\x{80}-\x{9f}\x{2028}\x{202e}"\\]{0,8}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			return strings.Repeat(piece.Draw(t, name), rapid.SampledFrom([]int{1, 100, 2000}).Draw(t, "times "+name))
		}
		violation := ratelimit.Violation{Rule: text("rule"), Window: text("window"), Key: text("key")}
		for _, err := range []error{
			&ratelimit.TooManyRequestsError{Method: text("method"), Message: text("message"), Violations: []ratelimit.Violation{violation, violation}},
			&ratelimit.NeverAdmissibleError{Method: text("method"), Rule: text("rule"), Key: text("key")},
			&ratelimit.StoreError{Method: text("method"), Err: errors.New(text("cause"))},
			&ratelimit.KeyError{Method: text("method"), Rule: text("rule"), Expr: text("expr"), Reason: text("reason"), Err: errors.New(text("cause"))},
			&ratelimit.RuleError{Rule: text("rule"), Argument: text("argument"), Reason: text("reason")},
		} {
			requireOneLine(t, err.Error())
			for _, attr := range err.(slog.LogValuer).LogValue().Group() {
				if attr.Value.Kind() == slog.KindString {
					requireOneLine(t, attr.Value.String())
				}
			}
			if b, err := json.Marshal(err); err != nil || !json.Valid(b) {
				t.Errorf("%s, error %v", b, err)
			}
		}
	})
}

// requireOneLine fails the test if a text is too long, or has characters that a terminal or a log would interpret.
func requireOneLine(t *rapid.T, s string) {
	for _, c := range s {
		if !unicode.IsPrint(c) {
			t.Fatalf("%U in %.100q", c, s)
		}
	}
	if len(s) > 1024 || !utf8.ValidString(s) {
		t.Fatalf("%d bytes: %.100q", len(s), s)
	}
}

// The text of several joined errors is one line, too, and errors.Is and errors.As find each of them.
func TestSeveralErrorsAreOneLine(t *testing.T) {
	err := ratelimit.New(memstore.New()).Check(ratelimit.Rule{Name: "a"}, ratelimit.Rule{Name: "b", Limit: 1, Per: time.Minute}, ratelimit.Rule{Name: "c", Limit: -1})
	want := `rule "a": per: a rule needs a window: per=1m, cron= for calendar times, or every= with an anchor; rule "c": per: a rule needs a window: per=1m, cron= for calendar times, or every= with an anchor`
	if _, ok := errors.AsType[*ratelimit.RuleError](err); !ok || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestErrorsAsJSON(t *testing.T) {
	refusal := &ratelimit.TooManyRequestsError{Message: "No.", RetryAfter: 90 * time.Second, Violations: []ratelimit.Violation{{Rule: "r", Window: "1m", Limit: 2, RetryAfter: 90 * time.Second}}}
	want := `{"message":"No.","retry_after":"1m30s","violations":[{"rule":"r","window":"1m","limit":2,"remaining":0,"retry_after":"1m30s"}]}`
	if b, err := json.Marshal(refusal); string(b) != want || err != nil {
		t.Errorf("got %s, error %v", b, err)
	}
	if b, err := json.Marshal(&ratelimit.TooManyRequestsError{Method: "p.T.M"}); string(b) != `{"method":"p.T.M"}` || err != nil {
		t.Errorf("what is empty is there: %s, error %v", b, err)
	}
	for _, empty := range []error{&ratelimit.TooManyRequestsError{}, &ratelimit.NeverAdmissibleError{}, &ratelimit.StoreError{}, &ratelimit.KeyError{}, &ratelimit.RuleError{}} {
		if b, err := json.Marshal(empty); err != nil || empty.Error() == "" {
			t.Errorf("%T of nothing: %s, error %v", empty, b, err)
		}
	}
}

// The words for results and policies in metrics and logs do not change.
func TestWords(t *testing.T) {
	var words []string
	for _, s := range []fmt.Stringer{
		ratelimit.ResultAdmitted, ratelimit.ResultRefused, ratelimit.ResultShadowRefused, ratelimit.ResultOtherRefused, ratelimit.Result(9),
		ratelimit.FailClosed, ratelimit.FailOpen, ratelimit.FailLocal, ratelimit.FailLocalShare(3), ratelimit.DefaultPolicy,
	} {
		words = append(words, s.String())
	}
	const want = "admitted refused shadow_refused other_refused Result(9) deny allow local local of 3 "
	if got := strings.Join(words, " "); got != want {
		t.Errorf("got %q", got)
	}
}

// Messages for people put windows into words.
func TestWindowsInWords(t *testing.T) {
	for rule, want := range map[ratelimit.Rule]string{
		{Limit: 10, Per: time.Minute}:                                       "10 per minute",
		{Limit: 10, Per: time.Minute, Algorithm: ratelimit.LeakyBucket}:     "10 per minute (leaky-bucket)",
		{Limit: 1, Per: 90 * time.Second, Algorithm: ratelimit.FixedWindow}: "1 per 1m30s (fixed-window)",
		{Limit: 5, Per: time.Hour, Algorithm: ratelimit.SlidingCounter}:     "5 per hour (sliding-counter)",
		{Limit: 5, Cron: "@daily", TZ: "Asia/Shanghai"}:                     "5 per calendar day (Asia/Shanghai)",
		{Limit: 5, Cron: "0  * * * *"}:                                      "5 per calendar hour",
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
		"memstore.WithClock: the function is nil":                                  func() { memstore.WithClock(nil) },
		"ratelimit.SlogObserver: the logger is nil":                                func() { ratelimit.SlogObserver(nil, 0) },
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
