package httplimit_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// answerOf returns the header of the response to a request that asks for all rules.
func answerOf(t *testing.T, limiter *ratelimit.Limiter, requests []ratelimit.Request, opts ...httplimit.Option) http.Header {
	t.Helper()
	w := httptest.NewRecorder()
	httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := limiter.Allow(r.Context(), requests...)
		if err == nil && !d.Allowed {
			err = &ratelimit.TooManyRequestsError{RetryAfter: d.RetryAfter, Violations: d.Violations}
		}
		_ = d.Release(r.Context()) // a store in memory does not fail
		httplimit.Answer(w, r, err)
	}), opts...).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	return w.Result().Header
}

// X-RateLimit shows the rule that refuses first. Of equal ones it shows one with the longest window, whatever their resets are.
func TestXRateLimitShowsTheRuleThatRefusesFirst(t *testing.T) {
	limiter, clock := limittest.New(t)
	requests := []ratelimit.Request{
		{Rule: ratelimit.Rule{Name: "running", Algorithm: ratelimit.Concurrency, Limit: 1}},
		{Rule: ratelimit.Rule{Name: "minute", Limit: 3, Per: time.Minute}},
		{Rule: ratelimit.Rule{Name: "hour", Limit: 4, Per: time.Hour}},
		{Rule: ratelimit.Rule{Name: "tokens", Limit: 50_000, Per: 24 * time.Hour}, Cost: 8000},
	}
	for i, want := range []string{
		"3 2",               // 2, 3 and 5 calls are left
		"3 1", "3 0", "3 0", // the last one is refused
		"4 0", // after a minute
		"4 0", // refused by the hour, and not by the minute
	} {
		if i == 4 {
			clock.Advance(time.Minute)
		}
		h := answerOf(t, limiter, requests, httplimit.WithXRateLimit())
		if got := h.Get("X-RateLimit-Limit") + " " + h.Get("X-RateLimit-Remaining"); got != want {
			t.Errorf("call %d: got %s, expected %s", i+1, got, want)
		}
	}
	dear := []ratelimit.Request{
		{Rule: ratelimit.Rule{Name: "calls", Limit: 10, Per: time.Minute}},
		{Rule: ratelimit.Rule{Name: "amount", Limit: 100, Per: time.Hour}, Cost: 40},
	}
	if h := answerOf(t, limiter, dear, httplimit.WithXRateLimit()); h.Get("X-RateLimit-Limit") != "100" {
		t.Errorf("one more call is admitted by a rule of 100, and nine by another: got %v", h)
	}
	if h := answerOf(t, limiter, requests[:1], httplimit.WithXRateLimit()); h.Get("RateLimit") == "" || h.Get("X-RateLimit-Limit") != "" {
		t.Errorf("a concurrency rule alone: got %v", h)
	}
}

func TestXRateLimitEpoch(t *testing.T) {
	limiter, _ := limittest.New(t)
	before := time.Now().Unix()
	h := answerOf(t, limiter, []ratelimit.Request{{Rule: ratelimit.Rule{Name: "hour", Limit: 4, Per: time.Hour}}}, httplimit.WithXRateLimitEpoch())
	reset, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if after := time.Now().Unix(); err != nil || reset < before+3600 || reset > after+3601 {
		t.Errorf("got %q between %d and %d", h.Get("X-RateLimit-Reset"), before, after)
	}
}

// Retry-After is no earlier than the end of the effective window: section 6 of the draft.
func TestJitter(t *testing.T) {
	limiter, _ := limittest.New(t)
	requests := []ratelimit.Request{{Rule: ratelimit.Rule{Name: "hour", Limit: 1, Per: time.Hour}}}
	answerOf(t, limiter, requests)
	seen := map[string]bool{}
	for range 100 {
		h := answerOf(t, limiter, requests, httplimit.WithJitter(0.5))
		retry, err := strconv.Atoi(h.Get("Retry-After"))
		if err != nil || retry < 3600 || retry > 5400 || h.Get("RateLimit") != `"hour";r=0;t=`+h.Get("Retry-After") {
			t.Fatalf("got %v", h)
		}
		seen[h.Get("Retry-After")] = true
	}
	if len(seen) < 10 {
		t.Errorf("100 refusals have only %d delays", len(seen))
	}
	if h := answerOf(t, limiter, requests); h.Get("Retry-After") != "3600" {
		t.Errorf("without jitter: got %v", h)
	}
	for _, share := range []float64{0, -1, 1.1, math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a share of %v is taken", share)
				}
			}()
			httplimit.WithJitter(share)
		}()
	}
}

// A rule that is not reported stands in no field. If it alone refuses, the answer has no fields but Retry-After.
func TestFieldsOfUnreportedRules(t *testing.T) {
	limiter, _ := limittest.New(t)
	requests := []ratelimit.Request{
		{Rule: ratelimit.Rule{Name: "calls", Limit: 5, Per: time.Minute}},
		{Rule: ratelimit.Rule{Name: "guesses", Limit: 1, Per: time.Hour, Unreported: true}},
	}
	h := answerOf(t, limiter, requests, httplimit.WithXRateLimit())
	if h.Get("RateLimit") != `"calls";r=4;t=60` || h.Get("RateLimit-Policy") != `"calls";q=5;w=60` || h.Get("X-RateLimit-Limit") != "5" {
		t.Errorf("admitted: got %v", h)
	}
	h = answerOf(t, limiter, requests, httplimit.WithXRateLimit())
	if h.Get("Retry-After") != "3600" {
		t.Errorf("refused: got %v", h)
	}
	for name := range h {
		if strings.Contains(name, "Ratelimit") {
			t.Errorf("refused: it has %s: %s", name, h.Get(name))
		}
	}
}
