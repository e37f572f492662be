package httplimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// A proxy's response has the fields of the other program and ours: draft-ietf-httpapi-ratelimit-headers-11, section 7.2, says that an intermediary does
// not remove them, and sections 3.1 and 4.1 that they are lists, of one line or several.
func TestFieldsOfAnUpstream(t *testing.T) {
	for name, test := range map[string]struct {
		upstream       [][2]string
		status         int
		policies, left string
		x, retry       string
	}{
		"no fields": {nil, 200, `"calls";q=2;w=60`, `"calls";r=1;t=60`, "2", ""},
		"its own": {[][2]string{{"RateLimit-Policy", `"default";q=9;w=60`}, {"RateLimit", `"default";r=5;t=3`}}, 200,
			`"default";q=9;w=60, "calls";q=2;w=60`, `"default";r=5;t=3, "calls";r=1;t=60`, "2", ""},
		"the same rule": {[][2]string{{"RateLimit-Policy", `"calls";q=2;w=60`}, {"RateLimit", `"calls";r=1;t=60`}}, 200,
			`"calls";q=2;w=60, "calls-2";q=2;w=60`, `"calls";r=1;t=60, "calls-2";r=1;t=60`, "2", ""},
		"several lines": {[][2]string{{"RateLimit-Policy", `"day";q=9`}, {"RateLimit-Policy", `"calls";q=2 , "calls-2" ;q=3`}, {"RateLimit", `"other, \"calls-3";r=5`}}, 200,
			`"day";q=9, "calls";q=2 , "calls-2" ;q=3, "calls-3";q=2;w=60`, `"other, \"calls-3";r=5, "calls-3";r=1;t=60`, "2", ""},
		"a refusal": {[][2]string{{"RateLimit", `"calls";r=0;t=7`}, {"Retry-After", "7"}}, 429,
			`"calls-2";q=2;w=60`, `"calls";r=0;t=7, "calls-2";r=1;t=60`, "2", "7"},
		"older fields": {[][2]string{{"X-RateLimit-Limit", "10"}, {"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "1772366441"}, {"Retry-After", "9"}}, 503,
			`"calls";q=2;w=60`, `"calls";r=1;t=60`, "2", "9"},
		"an older draft": {[][2]string{{"RateLimit", "limit=10, remaining=5, reset=3"}}, 200,
			`"calls";q=2;w=60`, `limit=10, remaining=5, reset=3, "calls";r=1;t=60`, "2", ""},
		"no list": {[][2]string{{"RateLimit", `"calls`}, {"RateLimit-Policy", `,;"\`}}, 200,
			`,;"\, "calls";q=2;w=60`, `"calls, "calls";r=1;t=60`, "2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for _, f := range test.upstream {
					w.Header().Add(f[0], f[1])
				}
				w.WriteHeader(test.status)
			}))
			defer upstream.Close()
			target, err := url.Parse(upstream.URL)
			if err != nil {
				t.Fatal(err)
			}
			now := start
			h := httplimit.Middleware(newLimiter(&now), nil, []ratelimit.Rule{{Name: "calls", Limit: 2, Per: time.Minute}},
				httplimit.WithXRateLimit())(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
			want(t, get(h, ""), test.status, map[string]string{"RateLimit-Policy": test.policies, "RateLimit": test.left,
				"X-RateLimit-Limit": test.x, "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "60", "Retry-After": test.retry})
			get(h, "")
			want(t, get(h, ""), 429, map[string]string{"RateLimit-Policy": `"calls";q=2;w=60`, "RateLimit": `"calls";r=0;t=60`, "X-RateLimit-Limit": "2",
				"Retry-After": "60"})
		})
	}
}

// An upstream with the same rule, whose permits are used up at the same time, is another program all the same.
func TestUpstreamWithTheSameRules(t *testing.T) {
	now := start
	rules := []ratelimit.Rule{{Name: "calls", Limit: 1, Per: time.Minute}}
	upstream := httptest.NewServer(httplimit.Middleware(newLimiter(&now), nil, rules)(ok))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	h := httplimit.Middleware(newLimiter(&now), nil, rules)(proxy)
	want(t, get(h, ""), 200, map[string]string{"RateLimit-Policy": `"calls";q=1;w=60, "calls-2";q=1;w=60`, "RateLimit": `"calls";r=0;t=60, "calls-2";r=0;t=60`})
	want(t, get(httplimit.Report(proxy), ""), 429, map[string]string{"RateLimit": `"calls";r=0;t=60`}) // without rules of its own
}

// A refusal has its fields once, whichever writers are between the answer and the Report.
func TestFieldsOfARefusalAreNotDoubled(t *testing.T) {
	within := map[string]func(http.Handler) http.Handler{
		"no writer": func(h http.Handler) http.Handler { return h },
		"a writer without Unwrap": func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(opaque{w}, r) })
		},
		"a TimeoutHandler, which copies the fields": func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Hour, "") },
	}
	for way, answer := range answers {
		for name, wrapped := range within {
			t.Run(way+" below "+name, func(t *testing.T) {
				now := start
				s := newService(newLimiter(&now))
				h := httplimit.Report(wrapped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if err := s.do(r.Context(), "ann"); err != nil {
						answer(w, r, err)
					}
				})), httplimit.WithXRateLimit())
				get(h, "")
				get(h, "")
				w := get(h, "")
				want(t, w, 429, map[string]string{"RateLimit": `"rule-1";r=0;t=60`, "X-RateLimit-Limit": "2", "X-RateLimit-Remaining": "0"})
				if n := strings.Count(fmt.Sprint(w.Result().Header), `"rule-1"`); n != 2 {
					t.Errorf("got %v", w.Result().Header)
				}
			})
		}
	}
}

// A handler that a TimeoutHandler has given up may still answer a refusal. That reaches no client, and meets nobody who writes the fields.
func TestRefusalAfterATimeout(t *testing.T) {
	now := start
	limiter, answered := newLimiter(&now), make(chan bool)
	h := httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, giveUp := context.WithCancel(r.Context())
		gaveUp := make(chan bool)
		http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(answered)
			_, err := limiter.Wait(r.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "none", Per: time.Hour}})
			giveUp()
			<-gaveUp
			httplimit.Answer(w, r, err)
		}), time.Hour, "").ServeHTTP(announcer{w, gaveUp}, r.WithContext(ctx))
	}), httplimit.WithXRateLimit())
	want(t, get(h, ""), 503, map[string]string{"RateLimit": `"none";r=0`, "X-RateLimit-Limit": "0"})
	<-answered
}

// An announcer closes its channel just before the fields of the response are written.
type announcer struct {
	http.ResponseWriter
	writing chan<- bool
}

func (a announcer) WriteHeader(status int) {
	close(a.writing)
	a.ResponseWriter.WriteHeader(status)
}
