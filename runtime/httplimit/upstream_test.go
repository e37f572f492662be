package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// An intermediary should not remove the fields of the origin: section 7.2 of the draft. The fields are lists (sections 3 and 4), so those of the
// proxy's own rules are added.
func TestFieldsOfAnUpstream(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("RateLimit-Policy", `"search";q=9;w=10`)
		h.Set("RateLimit", `"search";r=4;t=5`)
		h.Set("X-RateLimit-Limit", "9")
		h.Set("X-RateLimit-Remaining", "4")
		h.Set("X-RateLimit-Reset", "5")
	}))
	defer upstream.Close()
	address, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	limiter, _ := limittest.New(t)
	rules := []ratelimit.Rule{{Name: "search", Limit: 2, Per: time.Minute}}
	proxy := httplimit.Middleware(limiter, nil, rules, httplimit.WithXRateLimit())(httputil.NewSingleHostReverseProxy(address))
	for _, want := range []map[string][]string{
		{"Ratelimit-Policy": {`"search";q=9;w=10`, `"search-2";q=2;w=60`}, "Ratelimit": {`"search";r=4;t=5`, `"search-2";r=1;t=60`}, "X-Ratelimit-Remaining": {"1"}},
		{"Ratelimit-Policy": {`"search";q=9;w=10`, `"search-2";q=2;w=60`}, "Ratelimit": {`"search";r=4;t=5`, `"search-2";r=0;t=60`}, "X-Ratelimit-Remaining": {"0"}},
		{"Ratelimit-Policy": {`"search";q=2;w=60`}, "Ratelimit": {`"search";r=0;t=60`}, "X-Ratelimit-Remaining": {"0"}, "Retry-After": {"60"}},
	} {
		w := httptest.NewRecorder()
		proxy.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		for name, values := range want {
			if got := w.Result().Header[name]; !slices.Equal(got, values) {
				t.Errorf("%d, %s: got %q, expected %q", w.Code, name, got, values)
			}
		}
	}
}

// A writer that hides the Report gets the fields of a refusal once.
func TestFieldsThroughAWriterThatHidesTheReport(t *testing.T) {
	limiter, _ := limittest.New(t)
	handler := httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := limiter.Wait(r.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "mine", Per: time.Minute}})
		httplimit.SetHeaders(struct{ http.ResponseWriter }{w}, err)
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if got := w.Result().Header["Ratelimit"]; !slices.Equal(got, []string{`"mine";r=0`}) {
		t.Errorf("got %q", got)
	}
}
