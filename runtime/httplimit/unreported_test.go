package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// Answers say nothing of an unreported rule but its delay.
func TestUnreported(t *testing.T) {
	secret := ratelimit.Rule{Name: "secret", Limit: 1, Per: time.Hour, Message: "Guess again.", Unreported: true}
	known := ratelimit.Rule{Name: "known", Limit: 1, Per: time.Minute, Message: "Slow down."}
	for name, rules := range map[string][]ratelimit.Rule{"alone": {secret}, "both": {secret, known}} {
		t.Run(name, func(t *testing.T) {
			now := start
			h := httplimit.Middleware(newLimiter(&now), httplimit.ClientIP().Of, rules)(ok)
			for range 2 {
				w := get(h, "203.0.113.9:80")
				if all := w.Body.String() + strings.Join(w.Header().Values("RateLimit"), "") + w.Header().Get("RateLimit-Policy"); strings.Contains(all, "secret") ||
					strings.Contains(all, "Guess") {
					t.Errorf("got %d %s", w.Code, all)
				}
				if w.Code == http.StatusTooManyRequests {
					want(t, w, 429, map[string]string{"Retry-After": "3600"})
					if told := strings.Contains(w.Body.String(), httplimit.QuotaExceeded); told != (name == "both") {
						t.Errorf("got %s", w.Body)
					}
				}
			}
		})
	}
	w := httptest.NewRecorder()
	httplimit.Error(w, httptest.NewRequest("GET", "/", nil), &ratelimit.NeverAdmissibleError{Cost: 5, Limit: 3, Unreported: true})
	if strings.Contains(w.Body.String(), "detail") {
		t.Errorf("got %s", w.Body)
	}
}
