package webhooks

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

func TestReceiversAskForQuiet(t *testing.T) {
	limiter, clock := limittest.New(t)
	client := NewClient(limiter)
	receiver := func(status int, field, value string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(field, value)
			w.WriteHeader(status)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	deliver := func(url string, refused bool, want time.Duration) {
		t.Helper()
		later, err := Deliver(client, url, strings.NewReader("{}"))
		if later != want || errors.Is(err, ratelimit.ErrTooManyRequests) != refused {
			t.Errorf("got %v, %v; expected %v", later, err, want)
		}
	}

	busy, frugal, well := receiver(429, "Retry-After", "30"), receiver(200, "RateLimit", `"all";r=0;t=40`), receiver(204, "Server", "well")
	deliver(busy, false, time.Second) // answered 429
	deliver(busy, true, 30*time.Second)
	deliver(frugal, false, 0)
	deliver(frugal, true, 40*time.Second)
	for range 10 {
		deliver(well, false, 0)
	}
	deliver(well, true, time.Second)
	clock.Advance(30 * time.Second)
	deliver(busy, false, time.Second)
	deliver(frugal, true, 10*time.Second)
	deliver(receiver(500, "Server", "ill"), false, time.Second)
	deliver("http://127.0.0.1:1/", false, time.Minute)
}
