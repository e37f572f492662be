package routers

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

func TestRouters(t *testing.T) {
	const (
		problem = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,` +
			`"detail":"Three greetings a minute.","violated-policies":["hello"]}` + "\n"
		short, line = `{"error":"Too Many Requests"}`, `{"error":"Too Many Requests"}` + "\n"
	)
	for _, test := range []struct {
		name    string
		router  func(Greeter, *ratelimit.Limiter) http.Handler
		refusal string
	}{{"net/http", ServeMux, problem}, {"chi", Chi, problem}, {"echo", Echo, line}, {"gin", Gin, short}} {
		limiter, clock := limittest.New(t)
		handler := test.router(NewLimitedGreeter(Polite{}, limiter), limiter)
		// want asks for a path from an address, and compares the status, the body, RateLimit and Retry-After.
		want := func(path, remote string, status int, body, left, retry string) {
			t.Helper()
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
			r.RemoteAddr = remote
			handler.ServeHTTP(w, r)
			header := w.Result().Header
			if w.Code != status || w.Body.String() != body && body != "" || header.Get("RateLimit") != left || header.Get("Retry-After") != retry {
				t.Errorf("%s %s: got %d, %q, %v; expected %d, %q, %s, %s", test.name, path, w.Code, w.Body, header, status, body, left, retry)
			}
		}
		const ann, bob = "203.0.113.9:80", "203.0.113.10:80"
		for _, left := range []string{`r=2;t=60`, `r=1;t=60`, `r=0;t=60`} {
			want("/hello/ann", ann, 200, "hello ann", `"hello";`+left, "")
			want("/news", ann, 200, "no news", `"news";`+left, "")
		}
		want("/hello/ann", ann, 429, test.refusal, `"hello";r=0;t=60`, "60")
		want("/news", ann, 429, "", `"news";r=0;t=60`, "60")
		want("/free", ann, 200, "no news", "", "")
		want("/hello/bob", bob, 200, "hello bob", `"hello";r=2;t=60`, "")
		want("/other", ann, 404, "", "", "")
		clock.Advance(time.Minute)
		want("/hello/ann", ann, 200, "hello ann", `"hello";r=2;t=60`, "")
	}
}
