package plans

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

func TestPlans(t *testing.T) {
	customers := map[string]*Customer{"k1": {"ann", 100}, "k2": {"bob", ratelimit.NoLimit}}
	limiter, clock := limittest.New(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items", LimitHandler(func(http.ResponseWriter, *http.Request) {}, limiter))
	mux.HandleFunc("GET /usage", UsagePage(limiter))
	handler := WithCustomer(func(key string) *Customer { return customers[key] }, mux)
	ask := func(key, path string, times, status int) string {
		t.Helper()
		w := httptest.NewRecorder()
		for range times {
			w = httptest.NewRecorder()
			r := httptest.NewRequest("GET", path, nil)
			r.Header.Set("X-API-Key", key)
			if handler.ServeHTTP(w, r); w.Code != status {
				t.Fatalf("%s of %q: got %d %s; expected %d", path, key, w.Code, w.Body, status)
			}
		}
		return w.Body.String()
	}

	ask("", "/items", 1, http.StatusUnauthorized)
	ask("k2", "/items", 1000, http.StatusOK)
	if got := ask("k2", "/usage", 1, http.StatusOK); got != "[]\n" {
		t.Errorf("got %s", got)
	}
	ask("k1", "/items", 59, http.StatusOK)
	clock.Advance(20 * time.Second)
	ask("k1", "/items", 1, http.StatusOK)
	if got := ask("k1", "/usage", 2, http.StatusOK); got != `[{"rule":"api","limit":100,"left":40,"more_in":"40s"}]`+"\n" {
		t.Errorf("got %s", got)
	}
	ask("k1", "/items", 40, http.StatusOK)
	ask("k1", "/items", 1, http.StatusTooManyRequests)
	customers["k1"] = &Customer{"ann", 101} // another plan
	ask("k1", "/items", 1, http.StatusOK)
	ask("k1", "/items", 1, http.StatusTooManyRequests)
}
