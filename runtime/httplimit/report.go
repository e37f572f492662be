package httplimit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/farside"
	"github.com/ratelimit-go/ratelimit/internal/httprequest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Option changes what [Report] and [Middleware] do. Of a Middleware inside another one, or inside a Report, only [WithErrorHandler] has an effect: give
// the others to the outermost one.
type Option func(*options)

type options struct {
	old    bool
	epoch  bool
	jitter float64
	answer func(http.ResponseWriter, *http.Request, error)
}

// WithXRateLimit adds the older fields X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. They describe one rule: the one that
// admits the fewest calls like this one before it refuses, and of several such the one with the longest window. In a refusal it is the rule that
// refused for the longest time. A rule with Concurrency has no such fields. Reset is in how many seconds all permits of the rule are back, also in a
// refusal: Retry-After says when to come back. With a limit of 0 there is no Reset.
//
// For example, a call costs 1 of a rule of 60 a minute, with 40 left, and 4,000 of one of 100,000 a day, with 5,000 left. The second rule
// admits one more such call. So Limit is 100000, and Remaining is 5000.
func WithXRateLimit() Option { return func(o *options) { o.old = true } }

// WithXRateLimitEpoch is [WithXRateLimit] whose Reset is the time at which all permits are back, in seconds since 1970 by this program's clock:
// 1795996800 instead of 60, for example. Clients of httprate and of ulule/limiter read it so.
func WithXRateLimitEpoch() Option { return func(o *options) { o.old, o.epoch = true, true } }

// WithJitter tells refused clients to come back up to a share of the delay later, so that those whose window ends at one time do not all come
// back in one second. Each refusal draws its own part, for Retry-After and for the times in the other fields. None is earlier than the rules say.
// For example, with a share of 0.1 a delay of 60 seconds becomes 60 to 66, and one of 2 seconds 2 or 3, because all are whole seconds. WithJitter
// panics if the share is not above 0 and at most 1.
func WithJitter(share float64) Option {
	if !(share > 0 && share <= 1) {
		panic(fmt.Sprintf("httplimit.WithJitter: found %v; expected a share above 0 and at most 1", share))
	}
	return func(o *options) { o.jitter = share }
}

// Report returns a handler that calls next and tells the client what the rules have left, in the fields RateLimit-Policy and RateLimit of
// the response. The fields cover all decisions that were made under the request's context before the header was written, in any service below
// the handler. A Report inside another one does nothing.
//
// For example, ann has used 7 permits of a rule "search" of 10 a minute, the first of them 20 seconds ago. Then RateLimit-Policy is
// "search";q=10;w=60, and RateLimit is "search";r=3;t=40: more than 3 permits are there in 40 seconds. docs/errors.md has a table of all algorithms.
//
// What next sets in its request, such as the Pattern and the path values of a router, is in the request of the outer handlers when it has ended.
//
// A response may have such fields already, as one of a reverse proxy's upstream does. RateLimit-Policy and RateLimit are lists: those of the rules
// are added, under names of their own. X-RateLimit-Limit, -Remaining and -Reset have one value each: those of [WithXRateLimit] replace it.
//
// Decisions under a Report cost the store somewhat more. Report panics if next is nil.
func Report(next http.Handler, opts ...Option) http.Handler {
	o := collect(opts)
	next = wrap.Next("httplimit.Report", next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { o.report(r.Context(), next, w, r, false) })
}

func collect(opts []Option) *options {
	o := &options{answer: Answer}
	for _, option := range opts {
		option(o)
	}
	return o
}

// report calls next under ctx. isOther says that ctx is not the context of r.
func (o *options) report(ctx context.Context, next http.Handler, w http.ResponseWriter, r *http.Request, isOther bool) {
	if reporterOf(r) == nil {
		reporting, report := ratelimit.WithReport(ctx)
		p := &reporter{report, o}
		writer := &reportingWriter{ResponseWriter: w, reporter: p}
		defer writer.begin() // a handler that writes nothing answers 200, or panics below a handler that answers panics
		w, ctx, isOther = writer, context.WithValue(reporting, reporterKey{}, p), true
	}
	if !isOther {
		next.ServeHTTP(w, r)
		return
	}
	inner := r.WithContext(ctx)
	defer httprequest.Return(r, inner)
	next.ServeHTTP(w, inner)
}

// reporter writes the fields of one response. A nil reporter has no decisions.
type reporter struct {
	*ratelimit.Report
	*options
}

// draw returns the jitter of one refusal.
func (p *reporter) draw() jitter {
	if p == nil || p.jitter == 0 {
		return jitter{}
	}
	return jitter{p.jitter, rand.Uint64()}
}

// jitter is what one refusal adds to delays: a part of a share of them. The zero jitter adds nothing.
type jitter struct {
	share float64
	part  uint64 // of the share, where 2^64 would be the whole
}

// seconds returns a delay and a part of its share: one of the whole seconds between the delay and the delay with its share, both rounded up. So a
// share of less than a second still spreads clients over two of them. Of a longer delay it returns no fewer.
func (j jitter) seconds(d time.Duration) int64 {
	d = min(d, math.MaxInt64/2)
	least, most := seconds(d), seconds(d+time.Duration(j.share*float64(d)))
	added, _ := bits.Mul64(j.part, uint64(most-least+1))
	return least + int64(added)
}

// rateLimit is the field RateLimit as http.Header has it.
const rateLimit = "Ratelimit"

// signature stands behind the end of the values of RateLimit in a refusal, before its part of the jitter and the id of the limit that refused.
const signature = "refusal "

// signed returns the values of RateLimit in a refusal, or none if its rules are Unreported. A Report outside tells them from the values of an
// upstream by the signature, whatever writers are in between, and in whatever goroutine the handler runs. No client sees it.
func signed(part uint64, id string, values ...string) []string {
	return append(values, signature+strconv.FormatUint(part, 10)+" "+id)[:len(values)]
}

// refusalOf reports whether the values of RateLimit are signed, and returns what the signature has.
func refusalOf(values []string) (part uint64, id string, ok bool) {
	if len(values) == cap(values) {
		return 0, "", false
	}
	rest, ok := strings.CutPrefix(values[:len(values)+1][len(values)], signature)
	number, id, _ := strings.Cut(rest, " ")
	part, _ = strconv.ParseUint(number, 10, 64)
	return part, id, ok
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
			all.add(idOf(q.Rule, q.Window), policy, limit{remaining: q.Remaining, cost: q.Cost, more: q.More, wait: q.Reset})
		}
	}
	return all
}

// idOf returns what identifies the limits of a rule.
func idOf(rule, window string) string { return rule + "\x00" + window }

// add adds limits to the fields that a response has, under names that are not in them.
func add(h http.Header, all limits) {
	if len(all) == 0 {
		return
	}
	there := names(h)
	for i := range all {
		all[i].rename(func(quoted string) bool { return there[quoted] || slices.ContainsFunc(all[:i], named(quoted)) })
	}
	h.Add("RateLimit-Policy", all.policies())
	h.Add("RateLimit", all.left())
}

// names returns the names in the fields, in quotes.
func names(h http.Header) map[string]bool {
	found := map[string]bool{}
	for _, field := range [...]string{"RateLimit-Policy", "RateLimit"} {
		for member := range farside.Split(strings.Join(h.Values(field), ","), ',') {
			for name := range farside.Split(member, ';') {
				found[strings.Trim(name, " \t")] = true
				break
			}
		}
	}
	return found
}

// addOld sets the older fields: for the limit with an id, which has refused, or else for the one that admits the fewest calls. late is the jitter of a
// refusal.
func (p *reporter) addOld(h http.Header, all limits, refused string, late jitter) {
	all = slices.DeleteFunc(all, func(l limit) bool { return l.concurrent })
	if len(all) == 0 {
		return
	}
	l := slices.MinFunc(all, fewestCallsFirst)
	if i := slices.IndexFunc(all, func(l limit) bool { return l.id == refused }); i >= 0 {
		l = all[i]
	}
	h.Set("X-RateLimit-Limit", integer(l.quota))
	h.Set("X-RateLimit-Remaining", integer(l.remaining))
	switch reset := late.seconds(l.wait); {
	case l.quota == 0 && l.wait == 0: // no permit ever comes
		h.Del("X-RateLimit-Reset")
	case p.epoch:
		wait := min(l.wait, math.MaxInt64/2)
		at := seconds(time.Duration(time.Now().UnixNano()) + wait)
		h.Set("X-RateLimit-Reset", integer(at+reset-seconds(wait)))
	default:
		h.Set("X-RateLimit-Reset", integer(reset))
	}
}

// reportingWriter sets the fields when the header is written. http.ResponseController finds its other features through Unwrap.
type reportingWriter struct {
	http.ResponseWriter
	reporter *reporter
	begun    bool
}

// begin sets the fields, unless the header is written already. RateLimit and RateLimit-Policy of a refusal, by [SetHeaders], stay as they are.
func (w *reportingWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	h, p := w.Header(), w.reporter
	part, refused, isRefusal := refusalOf(h[rateLimit])
	if isRefusal && len(h[rateLimit]) == 0 { // by rules that clients do not learn of
		delete(h, rateLimit)
		return
	}
	all := p.limits()
	if p.old {
		p.addOld(h, slices.Clone(all), refused, jitter{p.jitter, part})
	}
	if !isRefusal {
		add(h, all)
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
