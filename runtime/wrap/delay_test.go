package wrap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// A Retry-After is a number of seconds, or a date in one of the three formats of HTTP.
func TestDelayOfField(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for field, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0": 0, "-1": 0, "+1": 0, "1.5": 0, "x": 0, "1e3": 0, " 7": 0,
		"86401": longestDelay, "3000000000": longestDelay, "99999999999999999999": longestDelay,
		"Mon, 23 Nov 2026 12:00:30 GMT": 30 * time.Second, "Monday, 23-Nov-26 12:00:30 GMT": 30 * time.Second,
		"Mon Nov 23 12:00:30 2026": 30 * time.Second, "Mon, 23 Nov 2026 11:59:30 GMT": -30 * time.Second, "2026-11-23T12:00:30Z": 0,
	} {
		if got := delayOfField(field, now); got != want {
			t.Errorf("%q: %s, want %s", field, got, want)
		}
	}
}

// FuzzDelayOfField reads what a far side may send. A date is as package net/http reads it.
func FuzzDelayOfField(f *testing.F) {
	for _, field := range []string{"7", "", "-1", "Mon, 23 Nov 2026 12:00:30 GMT", "Monday, 23-Nov-26 12:00:30 GMT", "Mon Nov 23 12:00:30 2026"} {
		f.Add(field)
	}
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, field string) {
		got := delayOfField(field, now)
		if at, err := http.ParseTime(field); err == nil && got != at.Sub(now) {
			t.Errorf("%q: %s, want %s", field, got, at.Sub(now))
		}
		if d := RetryAfter(http.Header{"Retry-After": {field}}); d < 0 || d > longestDelay {
			t.Errorf("%q: %s", field, d)
		}
	})
}

// status has the methods by which the details of a gRPC status are found.
type status struct{ details []*detail }

func (s *status) Error() string           { return "status" }
func (s *status) GRPCStatus() *status     { return s }
func (s *status) Proto() *status          { return s }
func (s *status) GetDetails() []*detail   { return s.details }
func retryInfo(message []byte) *status    { return &status{[]*detail{{"x/y", nil}, {infoType, message}}} }
func (*other) GRPCStatus() (int, error)   { return 0, nil }
func (*nothing) GRPCStatus() *status      { return nil }
func (*number) GRPCStatus() *numberStatus { return &numberStatus{} }
func (*numberStatus) Proto() int          { return 3 }

const infoType = "type.googleapis.com/google.rpc.RetryInfo"

type (
	other        struct{ error }
	nothing      struct{ error }
	number       struct{ error }
	numberStatus struct{}
	detail       struct {
		url   string
		value []byte
	}
)

func (d *detail) GetTypeUrl() string { return d.url }
func (d *detail) GetValue() []byte   { return d.value }

// encoded returns a google.rpc.RetryInfo.
func encoded(seconds int64, nanoseconds int32) []byte {
	duration := binary.AppendUvarint([]byte{1 << 3}, uint64(seconds))
	duration = binary.AppendUvarint(append(duration, 2<<3), uint64(int64(nanoseconds)))
	return append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(duration))), duration...)
}

// RetryAfter finds the delay wherever a far side may tell it, and nothing in anything else.
func TestRetryAfter(t *testing.T) {
	seven, header := 7*time.Second, http.Header{"Retry-After": {"7"}}
	var none *http.Response
	refusal := &ratelimit.TooManyRequestsError{RetryAfter: seven}
	for _, c := range []struct {
		x    any
		want time.Duration
	}{
		{header, seven}, {http.Header{}, 0}, {http.Header(nil), 0}, {&http.Response{Header: header}, seven}, {&http.Response{}, 0}, {none, 0},
		{refusal, seven}, {fmt.Errorf("call: %w", refusal), seven}, {errors.Join(errors.New("x"), nil, refusal), seven},
		{&url.Error{Op: "Get", Err: refusal}, seven}, {&ratelimit.TooManyRequestsError{Never: true}, 0}, {error(refusal), seven},
		{&ratelimit.TooManyRequestsError{RetryAfter: 25 * time.Hour}, longestDelay}, {&ratelimit.TooManyRequestsError{RetryAfter: -1}, 0},
		{retryInfo(encoded(6, 1e9)), seven}, {fmt.Errorf("call: %w", retryInfo(encoded(7, 0))), seven}, {retryInfo(encoded(-7, 0)), 0},
		{retryInfo(encoded(math.MaxInt64, 0)), longestDelay}, {retryInfo(encoded(math.MinInt64, math.MinInt32)), 0}, {retryInfo(nil), 0},
		{&status{}, 0}, {(*status)(nil), 0}, {&other{}, 0}, {&nothing{}, 0}, {&number{}, 0}, {errors.New("slow down"), 0},
		{nil, 0}, {7, 0}, {"7", 0}, {struct{ Header int }{7}, 0}, {struct{ header http.Header }{header}, 0},
	} {
		if got := RetryAfter(c.x); got != c.want {
			t.Errorf("%T %v: %s, want %s", c.x, c.x, got, c.want)
		}
	}
}

// The delay of a RetryInfo is read whatever other fields are around it.
func TestRetryInfoIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delay := time.Duration(rapid.Int64Range(0, int64(longestDelay)).Draw(t, "delay"))
		message := encoded(int64(delay/time.Second), int32(delay%time.Second))
		for range rapid.IntRange(0, 3).Draw(t, "others") {
			field := binary.AppendUvarint(nil, rapid.Uint64Range(2, 1<<40).Draw(t, "number")<<3)
			field = binary.AppendUvarint(field, rapid.Uint64().Draw(t, "value"))
			message = append(field, message...)
		}
		if got := RetryAfter(retryInfo(message)); got != delay {
			t.Fatalf("got %s, want %s", got, delay)
		}
	})
}

// A negative delay is none, however far below zero.
func TestNegativeRetryInfo(t *testing.T) {
	for _, seconds := range []int64{-1, -9223372037, math.MinInt64} {
		if d := RetryAfter(retryInfo(encoded(seconds, 0))); d != 0 {
			t.Errorf("%d seconds: got %s", seconds, d)
		}
	}
}

// FuzzRetryInfo decodes what a far side may send.
func FuzzRetryInfo(f *testing.F) {
	f.Add(encoded(7, 5))
	f.Add(encoded(math.MaxInt64, math.MinInt32))
	f.Add(encoded(-9223372037, 0))
	f.Fuzz(func(t *testing.T, message []byte) {
		if d := RetryAfter(retryInfo(message)); d < 0 || d > longestDelay {
			t.Errorf("got %s", d)
		}
	})
}

// A duration that cannot be computed is 0. The first time is logged, without the text of the cause.
func TestDelay(t *testing.T) {
	log := new(redistest.Log) // limiters of other tests may write to it, too
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	ctx, rules := t.Context(), NewRules("p.T.M", ratelimit.Rule{Limit: 2, Per: time.Hour, Pausable: true})
	taken, err := Begin(ctx, rules.On(ratelimit.New(memstore.New())), rules, Charge{Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := rules.Delay(ctx, taken, 0, "f()", func() time.Duration { return time.Second }); got != time.Second || strings.Contains(log.String(), "method=p.T.M") {
		t.Errorf("got %s, logged %s", got, log)
	}
	for range 2 {
		if got := rules.Delay(ctx, taken, 0, "f()", func() time.Duration { return Must(time.Second, errors.New("secret")) }); got != 0 {
			t.Errorf("got %s", got)
		}
	}
	if text := log.String(); strings.Count(text, "method=p.T.M expr=f()") != 1 || strings.Contains(text, "secret") {
		t.Errorf("logged %s", text)
	}
}

// A program that asks errors for delays links only the methods that it needs: with go-redis all of them would be 10 MB.
func TestRetryAfterLinksNoFurtherMethods(t *testing.T) {
	program := filepath.Join(t.TempDir(), "link")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/link").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	symbols, err := exec.Command("go", "tool", "nm", program).Output()
	if err != nil || !strings.Contains(string(symbols), "main.main") || strings.Contains(string(symbols), "main.failure.Unused") {
		t.Errorf("the program has a method that nothing calls, or no main: %v", err)
	}
}
