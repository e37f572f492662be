package httplimit

import (
	"cmp"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Transport limits the requests of an HTTP client by rules, and holds them while the far side asks for quiet. All rules count for the key of the
// request, which the function key returns; if it is nil, all requests share the permits. A request waits as long as the rules' Wait says. One
// that is refused is not sent: RoundTrip returns the error of package ratelimit, in a *url.Error of the client.
//
// A response with the status 429, or 503, and a Retry-After pauses the key for so long, up to a day, in all programs with the limiter's prefix:
// requests that may wait longer hold, and others are refused. For that, rules become Pausable, except those with Cron, Lease, or a mode that
// refuses nothing. For example, with limit 100 per second, Wait 1m and the answer "Retry-After: 2", every process is quiet for two seconds, and
// then goes on at 100 a second.
//
// If an http.Transport could not send a request, its permits go back. If next is nil, it is http.DefaultTransport. Transport panics if there is
// no rule, if a rule is not valid, has Distinct or Computed, or is a Concurrency, or if the limiter is nil.
func Transport(
	limiter *ratelimit.Limiter, key func(*http.Request) (string, error), rules []ratelimit.Rule, next http.RoundTripper,
) http.RoundTripper {
	for _, r := range rules {
		if r.Releases() {
			panic("httplimit.Transport: rule " + strconv.Quote(r.Name) + " counts calls that run, and nobody says when a response was read")
		}
	}
	return &transport{newLimits("httplimit.Transport", limiter, key, wrap.Pausable(rules)), cmp.Or(next, http.DefaultTransport)}
}

type transport struct {
	limits *wrap.Keyed[*http.Request]
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	taken, err := t.limits.Take(r.Context(), r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	var began, left atomic.Bool
	traced := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GetConn:      func(string) { began.Store(true) },
		WroteHeaders: func() { left.Store(true) },
	})
	response, err := t.next.RoundTrip(r.WithContext(traced))
	if err != nil {
		if began.Load() && !left.Load() {
			t.limits.GiveBack(r.Context(), taken)
		}
		return nil, err
	}
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable {
		t.limits.Pause(r.Context(), taken, wrap.RetryAfter(response.Header))
	}
	return response, nil
}
