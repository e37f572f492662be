package httplimit

import (
	"context"
	"net/http"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// WithErrorHandler makes answer, instead of [Answer], write the response to a request that [Middleware] does not let pass. The error is one of
// those that [Error] knows, or that of the request's context. For a body of your own, call [SetHeaders] and write [Status]. If Status returns 0, the
// context has ended: leave the response to [Answer].
func WithErrorHandler(answer func(w http.ResponseWriter, r *http.Request, err error)) Option {
	if answer == nil {
		panic("httplimit.WithErrorHandler: the function is nil")
	}
	return func(o *options) { o.answer = answer }
}

// Answer is [Error] that also answers all other errors: with 503 if the request's context has ended, and otherwise with 500. For nil it does
// nothing, so a handler may end by Answer(w, r, err). It logs nothing.
// Log errors that are no [ratelimit.TooManyRequestsError] before you answer them, or add [ratelimit.SlogObserver] to the limiter.
func Answer(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case err == nil, Error(w, r, err):
	case r.Context().Err() != nil:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// Middleware limits handlers by rules. All rules count for the key of the request, which the function key returns: ClientIP(…).Of for the
// client's address, or a function of yours. An error of the function, or an empty key, is answered as a *ratelimit.KeyError: with 400, or
// with 500 if the error wraps [ratelimit.ErrInternal]. If key is nil, all requests share the permits. Rules may have Wait. A rule with
// Concurrency gets its permit back when the handler returns. Responses say what the rules have left, as with [Report].
//
// ratelimit.ChargeFrom(r.Context()) is what the request was charged: all rules count as rules with cost=1. So a handler may add to it while it runs,
// and settle it. If the context of the request has a Charge already, that one stays.
//
// Give each rule a Name: rules of one name and window share their counts, even in different middlewares. Middleware panics if there is no rule, if a
// rule is not valid, if it has Distinct, Computed or Every, because a request has no member, limit or anchor, or if the limiter is nil. The function
// that it returns panics if the handler is nil.
func Middleware(
	limiter *ratelimit.Limiter, key func(*http.Request) (string, error), rules []ratelimit.Rule, opts ...Option,
) func(http.Handler) http.Handler {
	limits, o := newLimits("httplimit.Middleware", limiter, key, rules), collect(opts)
	return func(next http.Handler) http.Handler {
		next = wrap.Next("httplimit.Middleware", next)
		limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			taken, err := limits.Take(r.Context(), r)
			if err != nil {
				o.answer(w, r, err)
				return
			}
			defer taken.Release(r.Context())
			next.ServeHTTP(w, r)
		})
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, own := wrap.WithCharge(r.Context())
			defer wrap.End(own)
			o.report(ctx, limited, w, r, own != nil)
		})
	}
}

// newLimits prepares rules for the function of a name. It panics if they do not suit requests.
func newLimits(name string, l *ratelimit.Limiter, key func(*http.Request) (string, error), rules []ratelimit.Rule) *wrap.Keyed[*http.Request] {
	if key == nil {
		return wrap.NewKeyed[*http.Request](name, l, nil, rules)
	}
	return wrap.NewKeyed(name, l, func(_ context.Context, r *http.Request) (string, error) { return key(r) }, rules)
}
