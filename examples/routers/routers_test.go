package routers

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

func TestRouters(t *testing.T) {
	const (
		problem = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,` +
			`"detail":"Three greetings a minute.","violated-policies":["hello"]}` + "\n"
		short, line = `{"error":"Too Many Requests"}`, `{"error":"Too Many Requests"}` + "\n"
	)
	log, before := new(bytes.Buffer), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	defer slog.SetDefault(before)
	for _, test := range []struct {
		name     string
		router   func(Greeter, *ratelimit.Limiter) http.Handler
		refusal  string
		patterns []string // of GET /hello/ann, GET /news and GET /other, as the middleware outside logs them
	}{
		{"net/http", ServeMux, problem, []string{`pattern="GET /hello/{name}"`, `pattern="GET /news"`, `pattern=""`}},
		{"chi", Chi, problem, []string{`pattern=/hello/{name}`, `pattern=/news`, `pattern=""`}},
		{"echo", Echo, line, nil}, {"gin", Gin, short, nil},
	} {
		limiter, clock := limittest.New(t)
		handler := test.router(NewLimitedGreeter(Polite{}, limiter), limiter)
		// want asks for a path from an address, and compares the status, the body, the fields of a rule of three a minute, and Retry-After.
		want := func(path, remote string, status int, body, left, retry string) {
			t.Helper()
			log.Reset()
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
			r.RemoteAddr = remote
			handler.ServeHTTP(w, r)
			header, policy := w.Result().Header, ""
			if name, _, ok := strings.Cut(left, ";"); ok {
				policy = name + ";q=3;w=60"
			}
			if w.Code != status || w.Body.String() != body && body != "" || header.Get("RateLimit") != left || header.Get("RateLimit-Policy") != policy ||
				header.Get("Retry-After") != retry {
				t.Errorf("%s %s: got %d, %q, %v; expected %d, %q, %s, %s", test.name, path, w.Code, w.Body, header, status, body, left, retry)
			}
		}
		pattern := func(i int) {
			t.Helper()
			if test.patterns != nil && !strings.Contains(log.String(), " "+test.patterns[i]+"\n") {
				t.Errorf("%s: logged %s; expected %s", test.name, log, test.patterns[i])
			}
		}
		const ann, bob = "203.0.113.9:80", "203.0.113.10:80"
		for _, left := range []string{`r=2;t=60`, `r=1;t=60`, `r=0;t=60`} {
			want("/hello/ann", ann, 200, "hello ann", `"hello";`+left, "")
			pattern(0)
			want("/news", ann, 200, "no news", `"news";`+left, "")
			pattern(1)
		}
		want("/hello/ann", ann, 429, test.refusal, `"hello";r=0;t=60`, "60")
		pattern(0)
		want("/news", ann, 429, "", `"news";r=0;t=60`, "60")
		pattern(1)
		want("/closed", ann, 429, "", `"news";r=0;t=60`, "60")
		want("/closed", bob, 503, "", `"news";r=2;t=60`, "")
		want("/free", ann, 200, "no news", "", "")
		want("/hello/bob", bob, 200, "hello bob", `"hello";r=2;t=60`, "")
		want("/other", ann, 404, "", "", "")
		pattern(2)
		clock.Advance(time.Minute)
		want("/hello/ann", ann, 200, "hello ann", `"hello";r=2;t=60`, "")
	}
}

// Echo answers the error of a handler when wrapped middleware has ended. The answer has the fields. Behind answered, the middleware sees the answer,
// too.
func TestEchoErrors(t *testing.T) {
	for _, inside := range []bool{false, true} {
		limiter, _ := limittest.New(t)
		seen := 0
		note := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				seen = w.(*echo.Response).Status
			})
		}
		router := echo.New()
		router.Use(echo.WrapMiddleware(note))
		uses := []echo.MiddlewareFunc{echo.WrapMiddleware(perClient(limiter))}
		if inside {
			uses = append(uses, answered)
		}
		router.GET("/", func(echo.Context) error { return echo.ErrServiceUnavailable }, uses...)
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		header := w.Result().Header
		if w.Code != 503 || header.Get("RateLimit") != `"news";r=2;t=60` || header.Get("RateLimit-Policy") != `"news";q=3;w=60` || (seen == 503) != inside {
			t.Errorf("answered inside %t: got %d, %v; the middleware saw %d", inside, w.Code, header, seen)
		}
	}
}
