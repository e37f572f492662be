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
	for name, router := range map[string]func(*ratelimit.Limiter) http.Handler{"net/http": ServeMux, "chi": Chi, "echo": Echo, "gin": Gin} {
		limiter, clock := limittest.New(t)
		handler := router(limiter)
		get := func(path, remote string) *httptest.ResponseRecorder {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
			r.RemoteAddr = remote
			handler.ServeHTTP(w, r)
			return w
		}
		want := func(w *httptest.ResponseRecorder, status int, left string) {
			t.Helper()
			if got := w.Result().Header.Get("RateLimit"); w.Code != status || got != left || (status == 200) != (w.Body.String() == "hello") {
				t.Errorf("%s: got %d, RateLimit %s, %s; expected %d, %s", name, w.Code, got, w.Body, status, left)
			}
		}
		const ann, bob = "203.0.113.9:80", "203.0.113.10:80"
		want(get("/hello", ann), 200, `"requests";r=2;t=60`)
		want(get("/hello", ann), 200, `"requests";r=1;t=60`)
		want(get("/hello", ann), 200, `"requests";r=0;t=60`)
		want(get("/hello", ann), 429, `"requests";r=0;t=60`)
		want(get("/free", ann), 200, "")
		want(get("/hello", bob), 200, `"requests";r=2;t=60`)
		clock.Advance(time.Minute)
		want(get("/hello", ann), 200, `"requests";r=2;t=60`)
	}
}
