package httplimit

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/httprequest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Option changes what [Report] and [Middleware] do.
type Option func(*options)

type options struct {
	old    bool
	answer func(http.ResponseWriter, *http.Request, error)
}

// WithXRateLimit adds the older fields X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. They describe only the rule with the
// fewest permits left. Reset is in how many seconds all of its permits are back, also in a refusal: Retry-After says when to come back.
func WithXRateLimit() Option { return func(o *options) { o.old = true } }

// Report returns a handler that calls next and tells the client what the rules have left, in the fields RateLimit-Policy and RateLimit of
// the response. The fields cover all decisions that were made under the request's context before the header was written, in any service below
// the handler. A Report inside another one does nothing.
//
// For example, ann has used 7 permits of a rule "search" of 10 a minute, the first of them 20 seconds ago. Then RateLimit-Policy is
// "search";q=10;w=60, and RateLimit is "search";r=3;t=40: more than 3 permits are there in 40 seconds. docs/errors.md has a table of all algorithms.
//
// What next sets in its request, such as the Pattern and the path values of a router, is in the request of the outer handlers when it has ended.
//
// Decisions under a Report cost the store somewhat more. Report panics if next is nil.
func Report(next http.Handler, opts ...Option) http.Handler {
	o := collect(opts)
	next = wrap.Next("httplimit.Report", next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { o.report(next, w, r) })
}

func collect(opts []Option) *options {
	o := &options{answer: Answer}
	for _, option := range opts {
		option(o)
	}
	return o
}

func (o *options) report(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if reporterOf(r) != nil {
		next.ServeHTTP(w, r)
		return
	}
	ctx, report := ratelimit.WithReport(r.Context())
	p := &reporter{report, o}
	writer := &reportingWriter{ResponseWriter: w, reporter: p}
	inner := r.WithContext(context.WithValue(ctx, reporterKey{}, p))
	defer func() {
		httprequest.Return(r, inner)
		writer.begin() // a handler that writes nothing answers 200, or panics below a handler that answers panics
	}()
	next.ServeHTTP(writer, inner)
}

// reporter writes the fields of one response. A nil reporter has no decisions.
type reporter struct {
	*ratelimit.Report
	*options
}

type reporterKey struct{}

func reporterOf(r *http.Request) *reporter {
	p, _ := r.Context().Value(reporterKey{}).(*reporter)
	return p
}

// reporterIn returns the reporter of the Report whose writer w is, or wraps.
func reporterIn(w http.ResponseWriter) *reporter {
	for {
		switch inner := w.(type) {
		case *reportingWriter:
			return inner.reporter
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return nil
		}
	}
}

// limits returns what the rules have left.
func (p *reporter) limits() limits {
	if p == nil {
		return nil
	}
	var all limits
	for _, q := range p.Quotas() {
		if policy, ok := q.Policy(); ok {
			all.add(q.Rule+"\x00"+q.Window, policy, q.Remaining, q.More, q.Reset)
		}
	}
	return all
}

// write sets the fields: the policies of all limits, and what the limits in some have left.
func write(h http.Header, all, some limits) {
	if len(some) > 0 {
		h.Set("RateLimit-Policy", all.policies())
		h.Set("RateLimit", some.left())
	}
}

// writeOld sets the older fields.
func writeOld(h http.Header, all limits) {
	if len(all) > 0 {
		l := slices.MinFunc(all, tightestFirst)
		h.Set("X-RateLimit-Limit", integer(l.quota))
		h.Set("X-RateLimit-Remaining", integer(l.remaining))
		h.Set("X-RateLimit-Reset", integer(seconds(l.wait)))
	}
}

// reportingWriter sets the fields when the header is written. http.ResponseController finds its other features through Unwrap.
type reportingWriter struct {
	http.ResponseWriter
	reporter *reporter
	begun    bool
}

// begin sets the fields, unless the header is written already. Those of a refusal, by [SetHeaders], stay as they are.
func (w *reportingWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	all := w.reporter.limits()
	if w.Header().Get("RateLimit") == "" {
		write(w.Header(), all, all)
	}
	if w.reporter.old {
		writeOld(w.Header(), all)
	}
}

// Unwrap is for http.ResponseController.
func (w *reportingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *reportingWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols { // another 1xx status does not end the header
		w.begin()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *reportingWriter) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// ReadFrom lets the connection send a file without copying it through this process's memory.
func (w *reportingWriter) ReadFrom(r io.Reader) (int64, error) {
	w.begin()
	return io.Copy(w.ResponseWriter, r)
}

func (w *reportingWriter) Flush() { _ = w.FlushError() }

// FlushError is for http.ResponseController, which prefers it to Flush.
func (w *reportingWriter) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack is for code that looks for an http.Hijacker, such as WebSocket libraries. It does not write the fields.
func (w *reportingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// CloseNotify is for code that needs an http.CloseNotifier, such as Stream of gin.
func (w *reportingWriter) CloseNotify() <-chan bool {
	for inner := w.ResponseWriter; ; {
		switch i := inner.(type) {
		case http.CloseNotifier: //lint:ignore SA1019 what needs it has no other way
			return i.CloseNotify()
		case interface{ Unwrap() http.ResponseWriter }:
			inner = i.Unwrap()
		default:
			return nil
		}
	}
}
