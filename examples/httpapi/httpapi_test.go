package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// service is a handler with a store whose clock the test controls.
type service struct {
	t       *testing.T
	now     time.Time
	handler http.Handler
}

func newService(t *testing.T, users map[string]string) *service {
	s := &service{t: t, now: time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)}
	store := memstore.New(memstore.WithClock(func() time.Time { return s.now }))
	limiter := ratelimit.New(store)
	s.handler = newHandler(NewLimitedLibrary(books, limiter), newLimitedExport(&export{books}, limiter), users)
	return s
}

// ask sends a request as user, from the default address of httptest.
func (s *service) ask(method, target, user string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if user != "" {
		r.Header.Set("Authorization", "Bearer "+user)
	}
	return s.send(r)
}

func (s *service) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

func (s *service) want(w *httptest.ResponseRecorder, status int, retryAfter string) {
	s.t.Helper()
	if w.Code != status || w.Header().Get("Retry-After") != retryAfter {
		s.t.Fatalf("got status %d, Retry-After %q; expected %d, %q; body: %s",
			w.Code, w.Header().Get("Retry-After"), status, retryAfter, w.Body)
	}
}

// wantProblem checks the body of a refusal.
func (s *service) wantProblem(w *httptest.ResponseRecorder, detail string, policies ...string) {
	s.t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		s.t.Errorf("Content-Type: got %q", got)
	}
	var got struct {
		Type, Detail string
		Violated     []string `json:"violated-policies"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		s.t.Fatal(err)
	}
	if got.Type != httplimit.QuotaExceeded || got.Detail != detail || !slices.Equal(got.Violated, policies) {
		s.t.Errorf("got %+v; expected %q of %q", got, detail, policies)
	}
}

func TestRefusalIsAProblemWithRetryAfter(t *testing.T) {
	s := newService(t, users)
	for left := range 5 {
		w := s.ask("GET", "/books?title=go", "ann")
		s.want(w, http.StatusOK, "")
		want := fmt.Sprintf(`"search";r=%d;t=1, "client";r=%d;t=60`, 4-left, 299-left) // a bucket's next permit is there in a second
		if got := w.Header().Get("RateLimit"); got != want {
			t.Errorf("RateLimit: got %s; expected %s", got, want)
		}
	}
	s.now = s.now.Add(time.Millisecond) // 999 ms are left, which round up
	w := s.ask("GET", "/books?title=go", "ann")
	s.want(w, http.StatusTooManyRequests, "1")
	s.wantProblem(w, "Too many requests.", "search")
	s.want(s.ask("GET", "/books?title=go", "bob"), http.StatusOK, "")
	s.now = s.now.Add(time.Second)
	s.want(s.ask("GET", "/books?title=go", "ann"), http.StatusOK, "")
}

func TestAllViolatedPoliciesAreNamed(t *testing.T) {
	s := newService(t, users)
	const reserve = "/reservations?isbn=9780134190440"
	s.want(s.ask("POST", reserve, "bob"), http.StatusNoContent, "")
	s.want(s.ask("POST", reserve, "ann"), http.StatusNoContent, "")
	w := s.ask("POST", reserve, "bob")
	s.want(w, http.StatusTooManyRequests, "50400") // 14 hours, to midnight in Berlin
	s.wantProblem(w, "9780134190440 is in great demand today.", "reservations-title")
	s.want(s.ask("POST", "/reservations?isbn=9781098105716", "ann"), http.StatusNoContent, "")
	s.want(s.ask("POST", "/reservations?isbn=9781098105716", "ann"), http.StatusNoContent, "")
	w = s.ask("POST", reserve, "ann")
	s.want(w, http.StatusTooManyRequests, "50400")
	s.wantProblem(w, "Three reservations a day.", "reservations-user", "reservations-title")
}

func TestOneClientAddress(t *testing.T) {
	many := map[string]string{}
	for i := range 61 {
		many[strconv.Itoa(i)] = strconv.Itoa(i)
	}
	s := newService(t, many)
	for i := range 300 {
		s.want(s.ask("GET", "/books", strconv.Itoa(i/5)), http.StatusOK, "")
	}

	r := httptest.NewRequest("GET", "/books", nil)
	r.Header.Set("Authorization", "Bearer 60")
	r.Header.Set("X-Forwarded-For", "203.0.113.7") // anybody can write this
	s.want(s.send(r), http.StatusTooManyRequests, "60")
	r.RemoteAddr = "203.0.113.7:4711"
	s.want(s.send(r), http.StatusOK, "")
}

func TestKeyErrors(t *testing.T) {
	s := newService(t, users)
	for _, user := range []string{"", "a token of nobody"} {
		w := s.ask("GET", "/books", user)
		s.want(w, http.StatusUnauthorized, "")
		if w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Error("a 401 must say how to log in")
		}
	}
	w := s.ask("POST", "/reservations", "ann")
	s.want(w, http.StatusBadRequest, "")
}

func TestServeHTTPIsLimited(t *testing.T) {
	s := newService(t, users)
	for range 2 {
		s.want(s.ask("GET", "/export", ""), http.StatusOK, "")
	}
	w := s.ask("GET", "/export", "")
	s.want(w, http.StatusTooManyRequests, "")
	if got := w.Header().Get("RateLimit"); got != `"export";r=0;t=3600` {
		t.Errorf("RateLimit: got %s", got)
	}
	s.now = s.now.Add(time.Hour)
	s.want(s.ask("GET", "/export", ""), http.StatusOK, "")
}

func TestWhatIsNotLimited(t *testing.T) {
	s := newService(t, users)
	for range 1000 {
		s.want(s.ask("GET", "/hours", ""), http.StatusOK, "")
	}
	s.want(s.ask("POST", "/reservations?isbn=0", "ann"), http.StatusNotFound, "")
}

// The demonstration prints the same in this process and on Redis.
func TestDemo(t *testing.T) {
	for name, url := range map[string]string{"memory": "", "redis": "redis://" + redistest.Start(t).Addr + "?read_timeout=1m"} {
		var out bytes.Buffer
		if err := run(&out, "127.0.0.1:0", url, "library"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`as ann: 200 OK`, `RateLimit: "search";r=4;t=1, "client";r=299;t=60`, `as ann: 429 Too Many Requests`, `"violated-policies":["search"]`,
			`as bob: 204 No Content`, "9780134190440 is in great demand today.", `as nobody: 429 Too Many Requests`, `as nobody: 401 Unauthorized`,
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: expected %s in\n%s", name, want, &out)
			}
		}
	}
	if err := run(nil, "127.0.0.1:0", "localhost", "library"); err == nil || !strings.HasPrefix(err.Error(), "REDIS_URL: ") {
		t.Error(err)
	}
}

func TestStoreOutOfReach(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, DialerRetries: 1})
	defer client.Close()
	limited := NewLimitedLibrary(books, ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute))))
	s := &service{t: t, handler: newHandler(limited, http.NotFoundHandler(), users)}
	s.want(s.ask("GET", "/books", "ann"), http.StatusOK, "")
	server.Stop()
	w := s.ask("GET", "/books", "ann")
	s.want(w, http.StatusServiceUnavailable, "1")
}

// A call whose key cannot be computed is not decided, but observers still get one event.
func TestObserversHearOfMissingKeys(t *testing.T) {
	var heard []string
	limiter := ratelimit.New(memstore.New(), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		heard = append(heard, fmt.Sprintf("%s %s: %v", e.Kind, e.Method, e.Err))
	}))
	_, err := NewLimitedLibrary(books, limiter).Search(t.Context(), "go")
	w := httptest.NewRecorder()
	newLimitedExport(&export{books}, limiter).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/export", nil))
	want := []string{
		fmt.Sprintf("failed examples/httpapi.Library.Search: %v", err),
		"failed examples/httpapi.export.ServeHTTP: examples/httpapi.export.ServeHTTP: export: clientIP(ctx): the context carries no client IP",
	}
	if _, ok := errors.AsType[*ratelimit.KeyError](err); !ok || !slices.Equal(heard, want) {
		t.Errorf("got %q, want %q", heard, want)
	}
}
