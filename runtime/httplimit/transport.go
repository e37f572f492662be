package httplimit

import (
	"cmp"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/farside"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Transport limits the requests of an HTTP client by rules, and holds them while the far side asks for quiet. All rules count for the key of the
// request, which the function key returns; if it is nil, all requests share the permits. A request waits as long as the rules' Wait says. One
// that is refused is not sent: RoundTrip returns the error of package ratelimit, in a *url.Error of the client.
//
// A response that asks for quiet pauses the key for so long, up to a day, in all programs with the limiter's prefix: requests that may wait longer
// hold, and others are refused. It asks by the status 429 or 503 and a field such as Retry-After, or RateLimit with nothing left; or by another status
// of 400 or more and Retry-After, Retry-After-Ms or X-Amz-Retry-After. docs/outbound.md has a table of all fields. A time counts from the
// response's Date. The first time that a field cannot be read is logged. For that, rules become Pausable, except those with Cron, Lease, or a mode that
// refuses nothing. For example, with limit 100 per second, Wait 1m and the answer "Retry-After: 2", every process is quiet for two seconds, and
// then goes on at 100 a second.
//
// If an http.Transport could not send a request, its permits go back. If next is nil, it is http.DefaultTransport. Transport panics if there is
// no rule, if a rule is not valid, has Distinct, Computed or Every, or is a Concurrency, or if the limiter is nil.
func Transport(
	limiter *ratelimit.Limiter, key func(*http.Request) (string, error), rules []ratelimit.Rule, next http.RoundTripper, options ...TransportOption,
) http.RoundTripper {
	for _, r := range rules {
		if r.Releases() {
			panic("httplimit.Transport: rule " + strconv.Quote(r.Name) + " counts calls that run, and nobody says when a response was read")
		}
	}
	t := &transport{limits: newLimits("httplimit.Transport", limiter, key, wrap.Pausable(rules)), next: cmp.Or(next, http.DefaultTransport)}
	for _, option := range options {
		option(t)
	}
	return t
}

// TransportOption changes a [Transport].
type TransportOption func(*transport)

// WithRemaining pauses the key before the far side's first 429: as soon as a response, of any status, says that nothing is left and when more is there,
// the key pauses until then, up to a day. For example, "RateLimit: "default";r=0;t=40" on a 200 pauses it for 40 seconds in all programs with the
// limiter's prefix. If a status of 400 or more says how long to wait, too, that counts. A response that a cache has kept, with an Age above 0, says nothing of what
// is left now: draft-ietf-httpapi-ratelimit-headers-11, section 7.3.
func WithRemaining() TransportOption { return func(t *transport) { t.remaining = true } }

type transport struct {
	limits    *wrap.Keyed[*http.Request]
	next      http.RoundTripper
	remaining bool
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
	t.limits.Pause(r.Context(), taken, farside.ByFields(response.StatusCode, response.Header.Values, time.Now(), t.remaining))
	return response, nil
}

// CloseIdleConnections closes those of the RoundTripper below. The method of http.Client calls it.
func (t *transport) CloseIdleConnections() {
	if next, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}
