package levels

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

func TestLevels(t *testing.T) {
	limiter, _ := limittest.New(t)
	routes := Routes(&Server{}, limiter)
	ask := func(method, path, of, user string, times, status int) {
		t.Helper()
		for n := range times {
			w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
			ctx := ratelimit.WithUserID(context.WithValue(r.Context(), contextKey{}, of), user)
			if routes.ServeHTTP(w, r.WithContext(ctx)); w.Code != status {
				t.Fatalf("%d: got %d %s; expected %d", n, w.Code, w.Body, status)
			}
		}
	}
	ask("GET", "/search", "acme", "ann", 20, http.StatusOK)
	ask("GET", "/search", "acme", "ann", 5, http.StatusTooManyRequests) // charged to no rule
	ask("GET", "/items", "acme", "ann", 80, http.StatusOK)
	ask("GET", "/items", "acme", "ann", 1, http.StatusTooManyRequests) // user
	ask("POST", "/items", "acme", "bob", 50, http.StatusOK)
	ask("POST", "/items", "acme", "bob", 1, http.StatusTooManyRequests) // writes
	ask("GET", "/items", "acme", "bob", 50, http.StatusOK)
	for _, user := range []string{"c", "d", "e", "f", "g", "h", "i", "j"} {
		ask("GET", "/items", "acme", user, 100, http.StatusOK)
	}
	ask("GET", "/items", "acme", "k", 1, http.StatusTooManyRequests) // tenant
	ask("GET", "/items", "else", "k", 1, http.StatusOK)
	ask("GET", "/health", "acme", "ann", 100, http.StatusOK)
}
