package config

import (
	"net/http"
	"net/http/httptest"
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

func TestTheVariableCounts(t *testing.T) {
	limiter, _ := limittest.New(t)
	search := LimitSearch(func(http.ResponseWriter, *http.Request) {}, limiter)
	admitted := func() (n int) {
		for {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
			if search(w, r.WithContext(ratelimit.WithClientIP(r.Context(), "192.0.2.1"))); w.Code != http.StatusOK {
				return n
			}
			n++
		}
	}
	if n := admitted(); n != 60 {
		t.Errorf("%d; expected 60", n)
	}
	perMinute = fromEnv("SEARCHES_PER_MINUTE", "70")
	if n := admitted(); n != 10 {
		t.Errorf("%d; expected 10 more", n)
	}
	if err := limiter.Overrides().Set(t.Context(), "searches", ratelimit.Override{Limit: new(int64(200))}); err != nil {
		t.Fatal(err)
	}
	if n := admitted(); n != 130 {
		t.Errorf("%d; expected 130 more", n)
	}
}
