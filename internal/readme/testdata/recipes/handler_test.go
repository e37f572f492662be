package shop

import (
	"net/http/httptest"
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

func TestHundredAMinute(t *testing.T) {
	limiter, _ := limittest.New(t)
	routes := Routes(limiter)
	for n := range 101 {
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, httptest.NewRequest("GET", "/items", nil))
		if refused := w.Header().Get("Retry-After") == "60"; (w.Code == 429) != (n == 100) || refused != (n == 100) {
			t.Fatalf("request %d: got %d, %v", n, w.Code, w.Header())
		}
	}
}
