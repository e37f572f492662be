package httplimit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

var start = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

func newLimiter(now *time.Time, options ...ratelimit.Option) *ratelimit.Limiter {
	return ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { return *now })), options...)
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })

func get(h http.Handler, remote string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = remote
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// want compares the status and some fields; an expected "" means that the field is absent.
func want(t *testing.T, w *httptest.ResponseRecorder, status int, fields map[string]string) {
	t.Helper()
	if w.Code != status {
		t.Errorf("got status %d; expected %d", w.Code, status)
	}
	for name, value := range fields {
		if got := strings.Join(w.Result().Header.Values(name), ", "); got != value {
			t.Errorf("%s: got %s; expected %s", name, got, value)
		}
	}
}

func TestMiddleware(t *testing.T) {
	now := start
	limiter := newLimiter(&now)
	h := httplimit.Middleware(limiter, httplimit.ClientIP().Of, []ratelimit.Rule{
		{Name: "minute", Limit: 2, Per: time.Minute, Message: "Two a minute."},
		{Name: "day", Limit: 100, Cron: "@daily"},
		{Name: "trial", Limit: 1, Per: time.Hour, Mode: ratelimit.ModeShadow},
		{Name: "steady", Limit: 1, Per: time.Millisecond, Burst: 5000, Algorithm: ratelimit.TokenBucket},
	}, httplimit.WithXRateLimit())(ok)
	if used, err := limiter.Rules(t.Context()); err != nil || len(used) != 4 {
		t.Errorf("before the first call, the rules are %+v, %v", used, err)
	}
	const policies = `"minute";q=2;w=60, "day";q=100, "steady";q=5000;w=5`
	w := get(h, "203.0.113.9:80")
	want(t, w, 200, map[string]string{
		"RateLimit-Policy": policies, "RateLimit": `"minute";r=1;t=60, "day";r=99;t=54000, "steady";r=4999;t=1`, "Retry-After": "",
		"X-RateLimit-Limit": "2", "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "60",
	})
	if w.Body.String() != "hello" {
		t.Errorf("got %q", w.Body)
	}
	now = now.Add(time.Millisecond)
	get(h, "203.0.113.9:81")
	now = now.Add(time.Millisecond)
	w = get(h, "203.0.113.9:82")
	want(t, w, 429, map[string]string{
		"RateLimit-Policy": policies, "RateLimit": `"minute";r=0;t=60`, "Retry-After": "60", "Content-Type": "application/problem+json",
		"X-RateLimit-Limit": "2", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60",
	})
	const body = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,` +
		`"detail":"Two a minute.","violated-policies":["minute"]}` + "\n"
	if w.Body.String() != body {
		t.Errorf("got %s", w.Body)
	}
	want(t, get(h, "203.0.113.10:80"), 200, nil)
}

func TestMiddlewareOfNoKey(t *testing.T) {
	now, failed := start, 0
	count := func(_ context.Context, e *ratelimit.Event) {
		if _, ok := errors.AsType[*ratelimit.KeyError](e.Err); ok && e.Kind == ratelimit.EventFailed {
			failed++
		}
	}
	limiter, rules := newLimiter(&now, ratelimit.WithObserver(count)), []ratelimit.Rule{{Limit: 1, Per: time.Minute}}
	h := httplimit.Middleware(limiter, nil, rules)(ok)
	want(t, get(h, "203.0.113.9:80"), 200, map[string]string{"RateLimit-Policy": `"rule-1";q=1;w=60`, "X-RateLimit-Limit": ""})
	want(t, get(h, "203.0.113.10:80"), 429, map[string]string{"RateLimit": `"rule-1";r=0;t=60`})
	for _, key := range []func(*http.Request) (string, error){
		func(*http.Request) (string, error) { return "", nil },
		func(*http.Request) (string, error) { return "x", errors.New("secret") },
	} {
		w := get(httplimit.Middleware(limiter, key, rules)(ok), "@")
		want(t, w, 400, map[string]string{"RateLimit": "", "Retry-After": ""})
		if got := w.Body.String(); got != `{"title":"Bad Request","status":400}`+"\n" {
			t.Errorf("got %s", got)
		}
	}
	if failed != 2 {
		t.Errorf("observers saw %d keys that could not be computed, want 2", failed)
	}
}

// A request without an address, and a key function that panics, are the server's fault: 500, and one line in the log says what to do.
func TestMiddlewareOfAFaultyServer(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	for said, key := range map[string]func(*http.Request) (string, error){
		"has no IP address": httplimit.ClientIP().Of,
		"has 0 addresses":   httplimit.ClientIP().Hops(2).Of,
		"boundsError":       func(r *http.Request) (string, error) { return strings.Split(r.URL.Path, "/")[9], nil },
	} {
		var log redistest.Log
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		now := start
		limiter := newLimiter(&now, ratelimit.WithLogger(slog.Default()))
		h := httplimit.Middleware(limiter, key, []ratelimit.Rule{{Name: "calls", Limit: 1, Per: time.Minute}})(ok)
		for range 3 {
			want(t, get(h, "@"), 500, map[string]string{"RateLimit": "", "Retry-After": ""})
		}
		if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), said) {
			t.Errorf("%d lines, not one that says %s: %s", lines, said, log.String())
		}
	}
}

// The error of a key wraps the error of the key function, even if the key is empty.
func TestCauseOfAKeyError(t *testing.T) {
	cause, got := errors.New("no session"), error(nil)
	key := func(*http.Request) (string, error) { return "", cause }
	note := httplimit.WithErrorHandler(func(_ http.ResponseWriter, _ *http.Request, err error) { got = err })
	rules := []ratelimit.Rule{{Limit: 1, Per: time.Minute}}
	get(httplimit.Middleware(newLimiter(new(time.Time)), key, rules, note)(ok), "203.0.113.9:80")
	if _, ok := errors.AsType[*ratelimit.KeyError](got); !ok || !errors.Is(got, cause) {
		t.Errorf("got %v", got)
	}
}

// The caller is at fault if the function of the key fails, unless its error says that the program is.
func TestMistakeOfAKeyFunction(t *testing.T) {
	key := func(*http.Request) (string, error) { return "", fmt.Errorf("%w: no database", ratelimit.ErrInternal) }
	h := httplimit.Middleware(newLimiter(new(time.Time)), key, []ratelimit.Rule{{Limit: 1, Per: time.Minute}})(ok)
	want(t, get(h, "203.0.113.9:80"), 500, nil)
}

// The fields of a response have the rules of all middlewares around a handler. Without a middleware there are no fields.
func TestMiddlewareInMiddleware(t *testing.T) {
	now := start
	h, limiter := http.Handler(ok), newLimiter(&now)
	for _, name := range []string{"inner", "outer"} {
		h = httplimit.Middleware(limiter, nil, []ratelimit.Rule{{Name: name, Limit: 2, Per: 1500 * time.Millisecond}})(h)
	}
	want(t, get(h, ""), 200, map[string]string{"RateLimit-Policy": `"outer";q=2, "inner";q=2`, "RateLimit": `"outer";r=1;t=2, "inner";r=1;t=2`})
	w := get(httplimit.Report(ok, httplimit.WithXRateLimit()), "")
	for name := range w.Result().Header {
		if strings.Contains(name, "Ratelimit") {
			t.Errorf("without a rule: got %v", w.Result().Header)
		}
	}
}

func TestErrorHandler(t *testing.T) {
	now := start
	h := httplimit.Middleware(newLimiter(&now), nil, []ratelimit.Rule{{Name: "none", Per: time.Minute}},
		httplimit.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, fmt.Sprint(errors.Is(err, ratelimit.ErrTooManyRequests)), http.StatusTeapot)
		}))(ok)
	w := get(h, "203.0.113.9:80")
	want(t, w, http.StatusTeapot, map[string]string{"RateLimit-Policy": `"none";q=0;w=60`})
	if w.Body.String() != "true\n" {
		t.Errorf("got %s", w.Body)
	}
}

// Each error has its status, and no answer shows keys, methods or causes.
func TestError(t *testing.T) {
	const secret = "13800000000"
	for _, test := range []struct {
		err    error
		status int
		detail string
		fields map[string]string
	}{
		{&ratelimit.TooManyRequestsError{
			Method: secret, Message: "Slowly.", RetryAfter: time.Second + 1,
			Violations: []ratelimit.Violation{{Rule: "r", Key: secret, Limit: 3, Remaining: 2, RetryAfter: time.Second + 1}},
		}, 429, "Slowly.", map[string]string{"Retry-After": "2", "RateLimit": `"r";r=2;t=2`, "RateLimit-Policy": `"r";q=3`}},
		{&ratelimit.TooManyRequestsError{
			Message: "Closed.", Never: true, Violations: []ratelimit.Violation{{Rule: "é\"\r\n", Never: true}},
		}, 429, "Closed.", map[string]string{"Retry-After": "", "RateLimit": `"%C3%A9\"%0D%0A";r=0`}},
		{&ratelimit.NeverAdmissibleError{Method: secret, Rule: secret, Key: secret, Cost: 5, Limit: 3}, 422,
			"The request costs 5; at most 3 are ever admitted.", map[string]string{"Retry-After": ""}},
		{&ratelimit.KeyError{Method: secret, Rule: secret, Expr: secret, Err: errors.New(secret)}, 400, "", map[string]string{"Retry-After": ""}},
		{&ratelimit.KeyError{Method: secret, Rule: secret, Reason: secret, Internal: true}, 500, "", map[string]string{"Retry-After": ""}},
		{&ratelimit.StoreError{Method: secret, Err: errors.New(secret)}, 503, "", map[string]string{"Retry-After": "1"}},
		{&ratelimit.RuleError{Rule: secret, Argument: secret, Reason: secret}, 500, "", map[string]string{"Retry-After": ""}},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		w.Header().Set("Content-Length", "1000")
		if !httplimit.Error(w, r, fmt.Errorf("service: %w", test.err)) {
			t.Fatalf("%v: not answered", test.err)
		}
		want(t, w, test.status, test.fields)
		if answer := fmt.Sprint(w.Result().Header, w.Body); strings.Contains(answer, secret) || w.Header().Get("Content-Length") != "" {
			t.Errorf("%T: %s", test.err, answer)
		}
		var p struct {
			Title, Detail string
			Status        int
		}
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != test.status || p.Detail != test.detail || p.Title == "" {
			t.Errorf("%T: got %s, %v", test.err, w.Body, err)
		}
	}
	for _, err := range []error{nil, errors.New("other"), context.Canceled} {
		w := httptest.NewRecorder()
		if httplimit.Error(w, httptest.NewRequest("GET", "/", nil), err) || len(w.Header()) > 0 || w.Body.Len() > 0 {
			t.Errorf("%v was answered", err)
		}
	}
}

// A program that writes a body of its own sets the status and fields of Error, also below a Report, whose writer a router has wrapped.
func TestSetHeaders(t *testing.T) {
	now := start
	limited := newService(newLimiter(&now))
	errs := []error{
		&ratelimit.TooManyRequestsError{Never: true}, &ratelimit.NeverAdmissibleError{}, &ratelimit.KeyError{}, &ratelimit.KeyError{Internal: true},
		&ratelimit.StoreError{Err: errors.New("down")}, &ratelimit.RuleError{}, nil, // the last becomes a refusal
	}
	for _, with := range []func(http.Handler) http.Handler{
		func(next http.Handler) http.Handler { return next },
		func(next http.Handler) http.Handler { return httplimit.Report(next, httplimit.WithXRateLimit()) },
	} {
		for i, err := range errs {
			answer := func(write func(http.ResponseWriter, *http.Request, error)) *httptest.ResponseRecorder {
				return get(with(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					failure := limited.do(r.Context(), strconv.Itoa(i)) // refuses after two calls
					if err != nil {
						failure = fmt.Errorf("service: %w", err)
					}
					write(w, r, failure)
				})), "")
			}
			if i == 0 {
				answer(func(http.ResponseWriter, *http.Request, error) {})
				answer(func(http.ResponseWriter, *http.Request, error) {})
			}
			theirs := answer(func(w http.ResponseWriter, r *http.Request, err error) { httplimit.Error(w, r, err) })
			ours := answer(func(w http.ResponseWriter, _ *http.Request, err error) {
				w = unwrapper{w}
				w.Header().Set("Content-Type", "application/problem+json")
				httplimit.SetHeaders(w, err)
				w.WriteHeader(httplimit.Status(err))
			})
			if ours.Code != theirs.Code || !reflect.DeepEqual(ours.Result().Header, theirs.Result().Header) {
				t.Errorf("%v: got %d %v; Error gives %d %v", err, ours.Code, ours.Result().Header, theirs.Code, theirs.Result().Header)
			}
		}
		now = now.Add(time.Hour)
	}
	for _, err := range []error{nil, errors.New("other"), context.Canceled} {
		w := httptest.NewRecorder()
		if httplimit.SetHeaders(w, err); httplimit.Status(err) != 0 || len(w.Header()) > 0 {
			t.Errorf("%v: got %d %v", err, httplimit.Status(err), w.Header())
		}
	}
}

// unwrapper is the writer of a router.
type unwrapper struct{ http.ResponseWriter }

func (u unwrapper) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// X-RateLimit-Reset says when all permits are back, on every answer. Retry-After says when the next one is.
func TestResetIsWhenAllIsBack(t *testing.T) {
	now := start
	h := httplimit.Middleware(newLimiter(&now), nil, []ratelimit.Rule{{Name: "r", Limit: 2, Per: time.Minute}}, httplimit.WithXRateLimit())(ok)
	for _, step := range []struct {
		after  time.Duration
		status int
		reset  string
		retry  string
	}{{0, 200, "60", ""}, {30 * time.Second, 200, "60", ""}, {10 * time.Second, 429, "50", "20"}} {
		now = now.Add(step.after)
		want(t, get(h, ""), step.status, map[string]string{"X-RateLimit-Limit": "2", "X-RateLimit-Reset": step.reset, "Retry-After": step.retry})
	}
}

// service is a limited service that a handler calls.
type service struct {
	limiter *ratelimit.Limiter
	rules   *wrap.Rules
}

func newService(limiter *ratelimit.Limiter) service {
	return service{limiter, wrap.NewRules("internal/secret.Service.Do",
		ratelimit.Rule{Limit: 2, Per: time.Minute}, ratelimit.Rule{Name: "internal/secret.Service", Key: "{user}", Limit: 5, Per: time.Hour})}
}

func (s service) do(ctx context.Context, user string) error {
	return wrap.Take(ctx, s.rules.On(s.limiter), s.rules, wrap.Everybody, user)
}

func TestReportOfServicesBelow(t *testing.T) {
	now := start
	s := newService(newLimiter(&now))
	h := httplimit.Report(httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.do(r.Context(), "ann"); err != nil && httplimit.Error(w, r, err) {
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})))
	const policies = `"rule-1";q=2;w=60, "rule-2";q=5;w=3600`
	want(t, get(h, ""), 204, map[string]string{"RateLimit-Policy": policies, "RateLimit": `"rule-1";r=1;t=60, "rule-2";r=4;t=3600`})
	get(h, "")
	want(t, get(h, ""), 429, map[string]string{"RateLimit-Policy": policies, "RateLimit": `"rule-1";r=0;t=60`, "Retry-After": "60"})
}

// Rules of different services may have the same name in the fields. A number distinguishes them, even in a refusal.
func TestFieldsOfTwoServices(t *testing.T) {
	now := start
	limiter := newLimiter(&now)
	one := newService(limiter)
	other := wrap.NewRules("internal/secret.Other.Do", ratelimit.Rule{Limit: 1, Per: time.Hour})
	h := httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, err := range []error{one.do(r.Context(), "ann"), wrap.Take(r.Context(), other.On(limiter), other, wrap.Everybody)} {
			if err != nil {
				httplimit.Error(w, r, err)
			}
		}
	}))
	get(h, "")
	w := get(h, "")
	want(t, w, 429, map[string]string{
		"RateLimit-Policy": `"rule-1";q=2;w=60, "rule-2";q=5;w=3600, "rule-1-2";q=1;w=3600`, "RateLimit": `"rule-1-2";r=0;t=3600`,
	})
	if !strings.Contains(w.Body.String(), `"violated-policies":["rule-1-2"]`) {
		t.Errorf("got %s", w.Body)
	}
}

func TestErrorWithoutReport(t *testing.T) {
	now := start
	s := newService(newLimiter(&now))
	for range 5 {
		_ = s.do(context.Background(), "ann")
		now = now.Add(time.Minute)
	}
	w := httptest.NewRecorder()
	httplimit.Error(w, httptest.NewRequest("GET", "/", nil), s.do(context.Background(), "ann"))
	want(t, w, 429, map[string]string{"RateLimit-Policy": `"rule-2";q=5;w=3600`, "RateLimit": `"rule-2";r=0;t=3300`})
}

// Over a real connection, the fields are set however a handler begins its response, and the features of the connection still work.
func TestBeforeTheFirstByte(t *testing.T) {
	s := newService(ratelimit.New(memstore.New()))
	for name, answer := range map[string]func(http.ResponseWriter){
		"nothing":     func(http.ResponseWriter) {},
		"WriteHeader": func(w http.ResponseWriter) { w.WriteHeader(201) },
		"Write":       func(w http.ResponseWriter) { _, _ = w.Write([]byte("x")) },
		"ReadFrom":    func(w http.ResponseWriter) { _, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("x")) },
		"Flush":       func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"controller":  func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
		"early hints": func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(200) },
		"deadline": func(w http.ResponseWriter) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
		},
	} {
		server := httptest.NewServer(httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = s.do(r.Context(), name)
			answer(w)
			_ = s.do(r.Context(), name+" too late") // in most cases too late for the fields
		})))
		response, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		server.Close()
		if response.Header.Get("RateLimit") == "" || response.Header.Get("RateLimit-Policy") == "" {
			t.Errorf("%s: got %v", name, response.Header)
		}
	}
}

// Informational responses do not end the header, except 101. The fields have all decisions before that, whatever was sent earlier.
func TestInformationalResponses(t *testing.T) {
	s := newService(ratelimit.New(memstore.New()))
	for _, status := range []int{http.StatusOK, http.StatusSwitchingProtocols} {
		informed := httptest.NewRecorder()
		h := httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			if informed.Header().Get("RateLimit") != "" {
				t.Error("the early hints have fields")
			}
			_ = s.do(r.Context(), "ann")
			w.WriteHeader(status)
			if informed.Header().Get("RateLimit") == "" {
				t.Errorf("%d: no fields", status)
			}
		}))
		h.ServeHTTP(informed, httptest.NewRequest("GET", "/", nil))
	}
}

// A flush gets to the connection, and its error back.
func TestFlush(t *testing.T) {
	w := get(httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush() })), "")
	if !w.Flushed {
		t.Error("nothing was flushed")
	}
	httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("got %v", err)
		}
	})).ServeHTTP(struct{ http.ResponseWriter }{w}, httptest.NewRequest("GET", "/", nil))
}

func TestHijack(t *testing.T) {
	server := httptest.NewServer(httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "raw\n")
	})))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "raw\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

// Whatever header a client sends, it uses up its own permits and nobody else's.
func TestForgedHeadersMoveNoKey(t *testing.T) {
	clients := httplimit.ClientIP(netip.MustParsePrefix("10.0.0.0/8"))
	rapid.Check(t, func(t *rapid.T) {
		header := rapid.SampledFrom([]string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"}).Draw(t, "read")
		c := clients.Header(header)
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = rapid.SampledFrom([]string{"203.0.113.9:80", "[2001:db8:0:1::2]:80"}).Draw(t, "remote")
		expected, _ := clients.Of(r)
		forge := func(name, label string) {
			for _, line := range rapid.SliceOf(rapid.StringMatching(`((for=)?"?(10\.0\.0\.[1-9]|192\.0\.2\.66|\[fd00::1\]|unknown)?"?[,;]? ?){0,5}`)).Draw(t, label) {
				r.Header.Add(name, line)
			}
		}
		for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "True-Client-Ip"} {
			forge(name, "forged "+name)
		}
		if rapid.Bool().Draw(t, "proxied") {
			ip, _, _ := net.SplitHostPort(r.RemoteAddr)
			if header == "Forwarded" {
				ip = fmt.Sprintf(`for="%s"`, r.RemoteAddr)
			}
			r.Header.Add(header, ip)
			r.RemoteAddr = "10.0.0.1:80"
		}
		if got, err := c.Of(r); got != expected || err != nil {
			t.Fatalf("%v: got %q, %v; expected %q", r.Header, got, err, expected)
		}
	})
}

func TestClients(t *testing.T) {
	c := httplimit.ClientIP()
	if got := get(addressOf(c), "[2001:db8:1:2:3::4]:80").Body.String(); got != "2001:db8:1:2::/64" {
		t.Errorf("got %s", got)
	}
	if got := get(addressOf(c.IPv6Bits(128)), "[2001:db8:1:2:3::4]:80").Body.String(); got != "2001:db8:1:2:3::4" {
		t.Errorf("got %s", got)
	}
	if got := get(addressOf(c.IPv6Bits(48)), "[2001:db8:1:2:3::4]:80").Body.String(); got != "2001:db8:1::/48" {
		t.Errorf("got %s", got)
	}
	if got := get(addressOf(c.IPv6Bits(1)), "[2001:db8:1:2:3::4]:80").Body.String(); got != "::/1" {
		t.Errorf("got %s", got)
	}
	if got := get(addressOf(c), "@").Body.String(); got != "" {
		t.Errorf("got %s", got)
	}
	for name, f := range map[string]func(){
		"zero prefix": func() { httplimit.ClientIP(netip.Prefix{}) }, "no bits": func() { c.IPv6Bits(0) }, "many bits": func() { c.IPv6Bits(129) },
		"no hop":     func() { c.Hops(0) },
		"no rule":    func() { httplimit.Middleware(newLimiter(new(time.Time)), nil, nil) },
		"no limiter": func() { httplimit.Middleware(nil, nil, []ratelimit.Rule{{Limit: 1, Per: time.Second}}) },
		"a bad rule": func() { httplimit.Middleware(newLimiter(new(time.Time)), nil, []ratelimit.Rule{{Limit: 1}}) },
		"distinct": func() {
			httplimit.Middleware(newLimiter(new(time.Time)), nil, []ratelimit.Rule{{Limit: 1, Per: time.Second, Distinct: "{member}"}})
		},
		"no answer": func() { httplimit.WithErrorHandler(nil) },
		"reported":  func() { httplimit.Report(nil) },
		"client":    func() { c.Handler(nil) },
		"limited": func() {
			httplimit.Middleware(newLimiter(new(time.Time)), nil, []ratelimit.Rule{{Limit: 1, Per: time.Second}})(nil)
		},
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", name)
		}
	}
}

func addressOf(c httplimit.Clients) http.Handler {
	return c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, _ := wrap.ClientIP(r.Context())
		fmt.Fprint(w, address)
	}))
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// The answer to another error does not show it.
func TestAnswer(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for status, ctx := range map[int]context.Context{500: context.Background(), 503: ended} {
		w := httptest.NewRecorder()
		httplimit.Answer(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx), errors.New("secret"))
		if w.Code != status || w.Body.Len() > 0 || !reflect.DeepEqual(w.Header(), http.Header{}) {
			t.Errorf("got %d %v %s; expected %d alone", w.Code, w.Header(), w.Body, status)
		}
	}
}

// levels are budgets of an organisation, a team and a user: of requests, input and output, a minute and a day.
func levels() (rules []ratelimit.Rule) {
	for _, level := range []string{"org", "team", "user"} {
		for _, what := range []string{"requests", "input", "output"} {
			rules = append(rules, ratelimit.Rule{Name: level + "-" + what, Key: "{" + level + "}", Limit: 50_000, Per: time.Minute},
				ratelimit.Rule{Name: level + "-" + what + "-day", Key: "{" + level + "}", Limit: 900_000, Cron: "@daily"})
		}
	}
	return rules
}

// The error and the answer name the levels that refuse, one or two of many. The others are not charged.
func TestRefusedLevels(t *testing.T) {
	rules, now := levels(), start
	prepared := wrap.NewRules("p.T.M", rules...)
	for i := range rules {
		for _, used := range [][]int{{i}, {i, (i + 1) % len(rules)}} {
			limiter := newLimiter(&now)
			var charges []wrap.Charge
			for _, r := range rules {
				charges = append(charges, wrap.Charge{Key: strings.Trim(r.Key, "{}") + "-key", Cost: 10})
			}
			var names []string
			for _, n := range slices.Sorted(slices.Values(used)) {
				names = append(names, rules[n].Name)
				if d, err := limiter.Allow(t.Context(), ratelimit.Request{Rule: rules[n], Key: charges[n].Key, Cost: rules[n].Limit}); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
			}
			err := wrap.TakeCharges(t.Context(), prepared.On(limiter), prepared, charges...)
			refused, _ := errors.AsType[*ratelimit.TooManyRequestsError](err)
			if refused == nil || len(refused.Violations) != len(names) {
				t.Fatalf("got %v; expected refusals by %v", err, names)
			}
			for n, v := range refused.Violations {
				if level, _, _ := strings.Cut(names[n], "-"); v.Rule != names[n] || v.Key != level+"-key" {
					t.Errorf("got %v; expected a refusal by %s", v, names[n])
				}
			}
			w := httptest.NewRecorder()
			httplimit.Error(w, httptest.NewRequest("GET", "/", nil), err)
			var problem struct {
				Violated []string `json:"violated-policies"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || w.Code != 429 || !slices.Equal(problem.Violated, names) {
				t.Errorf("got %s, %v; expected %v", w.Body, err, names)
			}
			other := (i + 2) % len(rules)
			d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: rules[other], Key: charges[other].Key})
			if err != nil || d.Quotas[0].Remaining != rules[other].Limit {
				t.Errorf("%s is charged: %+v, %v", rules[other].Name, d, err)
			}
		}
	}
}

// A header of an address that is not trusted is ignored, and logged once for each ClientIP.
func TestIgnoredHeaderIsLogged(t *testing.T) {
	log := new(redistest.Log) // limiters of other tests may write to it, too
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	defer slog.SetDefault(before)
	logged := func(want int, what string) {
		t.Helper()
		text := log.String()
		if n := strings.Count(text, "httplimit: "); n != want || n != strings.Count(text, "name its prefix in httplimit.ClientIP") {
			t.Errorf("%s: logged %d lines: %s", what, n, text)
		}
	}
	for i, clients := range []httplimit.Clients{httplimit.ClientIP(), httplimit.ClientIP(netip.MustParsePrefix("10.0.0.0/8")).Header("X-Real-IP")} {
		h := clients.Handler(ok)
		get(h, "10.0.0.1:80")
		logged(i, "without a header")
		for range 3 {
			get(h, "127.0.0.1:80", "X-Forwarded-For", "203.0.113.9\n", "X-Real-IP", "203.0.113.9\n")
		}
		logged(i+1, "with a header")
	}
	get(httplimit.ClientIP(netip.MustParsePrefix("10.0.0.0/8")).Handler(ok), "10.0.0.1:80", "X-Forwarded-For", "203.0.113.9")
	logged(2, "a trusted proxy")
}
