package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// The middleware lets each address make two requests a minute. The server is behind a load balancer in 10.0.0.0/8.
func ExampleMiddleware() {
	limiter := ratelimit.New(memstore.New())
	clients := httplimit.ClientIP(netip.MustParsePrefix("10.0.0.0/8"))
	limit := httplimit.Middleware(limiter, clients.Of, []ratelimit.Rule{
		{Name: "requests", Limit: 2, Per: time.Minute, Message: "Two requests a minute."},
	})
	handler := limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello") }))

	for range 3 {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "10.0.0.1:4711"
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"), w.Header().Get("RateLimit"))
	}
	// Output:
	// 200 "requests";q=2;w=60 "requests";r=1;t=60
	// 200 "requests";q=2;w=60 "requests";r=0;t=60
	// 429 "requests";q=2;w=60 "requests";r=0;t=60
}

// Error answers the errors of limits. Report tells clients what they have left after calls that were admitted.
func ExampleError() {
	limiter := ratelimit.New(memstore.New())
	export := newService(limiter) // generated code is used in the same way
	handler := httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch err := export.do(r.Context(), "ann"); {
		case err == nil:
			fmt.Fprint(w, "done")
		case !httplimit.Error(w, r, err):
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}))

	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 done
	// 200 done
	// 429 {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"detail":"Too many requests.","violated-policies":["rule-1"]}
}

// The client is the last address in X-Forwarded-For that belongs to no trusted proxy. Addresses that the client adds before it are ignored.
func ExampleClientIP() {
	clients := httplimit.ClientIP(netip.MustParsePrefix("10.0.0.0/8"))
	for _, forwarded := range []string{"", "203.0.113.9", "1.2.3.4, 203.0.113.9, 10.0.0.2", "2001:db8::1"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "10.0.0.1:4711"
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		fmt.Println(clients.Of(r))
	}
	// Output:
	// 10.0.0.1 <nil>
	// 203.0.113.9 <nil>
	// 203.0.113.9 <nil>
	// 2001:db8::/64 <nil>
}
