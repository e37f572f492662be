package httplimit_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
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

// What a response says counts from when it is written: after a call has waited for its place, and its handler has worked.
func TestFieldsCountFromTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := []ratelimit.Rule{{Name: "steady", Limit: 1, Per: 2 * time.Second, Wait: time.Minute}}
		work := 500 * time.Millisecond
		h := httplimit.Middleware(ratelimit.New(memstore.New()), nil, rules, httplimit.WithXRateLimit())(
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(work) }))
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() {
				w := get(h, "203.0.113.9:80")
				want(t, w, 200, map[string]string{"RateLimit": `"steady";r=0;t=2`})
			})
		}
		calls.Wait()
		work = 5 * time.Second
		w := get(h, "203.0.113.9:80") // more than none is left, and the response cannot say how much
		want(t, w, 200, map[string]string{"RateLimit": `"steady";r=0;t=1`, "X-RateLimit-Reset": "0"})
	})
}

// The same after a call has waited for one that ran: it was woken before the time at which it would have asked by itself.
func TestFieldsCountFromTheResponseOfACallThatWasHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := []ratelimit.Rule{
			{Name: "minute", Limit: 10, Per: time.Minute},
			{Name: "running", Algorithm: ratelimit.Concurrency, Limit: 1, Wait: time.Minute},
		}
		h := httplimit.Middleware(ratelimit.New(memstore.New()), nil, rules)(
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(4500 * time.Millisecond) }))
		var calls sync.WaitGroup
		for i, left := range []string{"r=9;t=56", "r=8;t=51"} { // the first permit comes back a minute after the first call
			time.Sleep(time.Duration(i) * time.Millisecond)
			calls.Go(func() {
				w := get(h, "203.0.113.9:80")
				want(t, w, 200, map[string]string{"RateLimit": `"minute";` + left + `, "running";r=0`})
			})
		}
		calls.Wait()
	})
}

// The end of a window in epoch seconds is rounded up once.
func TestEpochIsRoundedUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := []ratelimit.Rule{{Name: "steady", Limit: 1, Per: 10 * time.Second}}
		h := httplimit.Middleware(ratelimit.New(memstore.New()), nil, rules, httplimit.WithXRateLimitEpoch())(
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(600 * time.Millisecond) }))
		began := time.Now().Unix() // a whole second
		time.Sleep(500 * time.Millisecond)
		want(t, get(h, "203.0.113.9:80"), 200, map[string]string{"X-RateLimit-Reset": strconv.FormatInt(began+11, 10)})
	})
}

// A rule that blocks is not reset before it admits a call, and one that never admits a call has no such time.
func TestXRateLimitResetOfABlock(t *testing.T) {
	for _, test := range []struct {
		rule  ratelimit.Rule
		reset string
	}{
		{ratelimit.Rule{Name: "r", Limit: 1, Per: time.Second, Block: 3 * time.Second}, "3"},
		{ratelimit.Rule{Name: "r", Per: time.Second}, ""},
	} {
		limiter, _ := limittest.New(t)
		h := httplimit.Middleware(limiter, nil, []ratelimit.Rule{test.rule}, httplimit.WithXRateLimit())(ok)
		get(h, "203.0.113.9:80")
		want(t, get(h, "203.0.113.9:80"), 429, map[string]string{"X-RateLimit-Reset": test.reset})
	}
}

// Of several rules that refuse, X-RateLimit shows the one with the longest delay, also through writers without Unwrap, and none of a Concurrency.
func TestXRateLimitOfARefusal(t *testing.T) {
	day := ratelimit.Rule{Name: "day", Limit: 2, Cron: "@daily"}
	week := ratelimit.Rule{Name: "week", Limit: 3, Per: 7 * 24 * time.Hour} // in which permits come back later
	running := ratelimit.Rule{Name: "running", Algorithm: ratelimit.Concurrency, Limit: 1}
	for way, answer := range answers {
		t.Run(way, func(t *testing.T) {
			now := start
			limiter := newLimiter(&now)
			requests := []ratelimit.Request{{Rule: day, Cost: 2}, {Rule: week, Cost: 2}, {Rule: running}}
			h := httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				d, err := limiter.Allow(r.Context(), requests...)
				if err != nil {
					t.Fatal(err)
				}
				if !d.Allowed {
					answer(w, r, &ratelimit.TooManyRequestsError{RetryAfter: d.RetryAfter, Violations: d.Violations})
				}
			}), httplimit.WithXRateLimit())
			want(t, get(h, ""), 200, map[string]string{"X-RateLimit-Limit": "2"}) // none of the day is left
			w := get(h, "")
			want(t, w, 429, map[string]string{"X-RateLimit-Limit": "3", "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "604800", "Retry-After": "604800"})
			requests = []ratelimit.Request{{Rule: week}, {Rule: running}} // one more call is left of the week, and the first call still runs
			want(t, get(h, ""), 429, map[string]string{"RateLimit": `"running";r=0`, "Retry-After": "1", "X-RateLimit-Limit": "3"})
		})
	}
}

// Reset is the time at which all permits are back, by the clock that the field Date has: a client that subtracts the two waits long enough.
func TestXRateLimitEpoch(t *testing.T) {
	now := start
	h := httplimit.Middleware(newLimiter(&now), nil, []ratelimit.Rule{{Name: "r", Limit: 1, Per: 90 * time.Second}}, httplimit.WithXRateLimitEpoch())(ok)
	server := httptest.NewServer(h)
	defer server.Close()
	for _, status := range []int{200, 429} {
		before := time.Now()
		response, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		after := time.Now()
		reset, err := strconv.ParseInt(response.Header.Get("X-RateLimit-Reset"), 10, 64)
		at := time.Unix(reset, 0)
		if err != nil || response.StatusCode != status || at.Before(before.Add(90*time.Second)) || at.After(after.Add(91*time.Second)) {
			t.Errorf("status %d, %v: all is back at %v, error %v; asked from %v to %v", response.StatusCode, response.Header, at, err, before, after)
		}
		date, err := http.ParseTime(response.Header.Get("Date"))
		if err != nil || at.Sub(date) < 90*time.Second {
			t.Errorf("all is back at %v, and Date is %v, error %v", at, date, err)
		}
		if response.Header.Get("X-RateLimit-Limit") != "1" {
			t.Errorf("got %v", response.Header)
		}
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

// A client that waits for calls to end is told a second or more, and one that a rule of limit 0 refuses nothing.
func TestJitterOfNoDelay(t *testing.T) {
	now := start
	for _, test := range []struct {
		rule   ratelimit.Rule
		values map[string]bool
	}{
		{ratelimit.Rule{Name: "running", Algorithm: ratelimit.Concurrency}, map[string]bool{"": true}},
		{ratelimit.Rule{Name: "running", Algorithm: ratelimit.Concurrency, Limit: 1}, map[string]bool{"1": true, "2": true}},
		{ratelimit.Rule{Name: "none", Per: time.Hour}, map[string]bool{"": true}},
	} {
		limiter, seen := newLimiter(&now), map[string]bool{}
		_, _ = limiter.Allow(t.Context(), ratelimit.Request{Rule: test.rule})
		h := httplimit.Middleware(limiter, nil, []ratelimit.Rule{test.rule}, httplimit.WithJitter(0.5))(ok)
		for range 200 {
			w := get(h, "")
			retry := w.Header().Get("Retry-After")
			if w.Code != 429 || !test.values[retry] || of(w.Header().Get("RateLimit"), "t") != "" {
				t.Fatalf("%+v: got %d %v", test.rule, w.Code, w.Header())
			}
			seen[retry] = true
		}
		if len(seen) != len(test.values) {
			t.Errorf("%+v: clients were told %v", test.rule, seen)
		}
	}
}
