package httplimit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// QuotaExceeded is the problem type of a refusal, from the IETF draft.
const QuotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// problem is the body of an answer: RFC 9457, application/problem+json.
type problem struct {
	Type             string   `json:"type,omitempty"` // absent if the title is enough
	Title            string   `json:"title"`
	Status           int      `json:"status"`
	Detail           string   `json:"detail,omitempty"`
	ViolatedPolicies []string `json:"violated-policies,omitempty"`
}

// Status returns the status that answers err, or 0 if err is nil, or neither is nor wraps an error of the runtime.
//
//	*ratelimit.TooManyRequestsError  429
//	*ratelimit.NeverAdmissibleError  422
//	*ratelimit.KeyError              400; 500 if its Internal is true
//	*ratelimit.StoreError            503
//	*ratelimit.RuleError             500
func Status(err error) int {
	key, isKey := errors.AsType[*ratelimit.KeyError](err)
	switch {
	case is[*ratelimit.TooManyRequestsError](err):
		return http.StatusTooManyRequests
	case is[*ratelimit.NeverAdmissibleError](err):
		return http.StatusUnprocessableEntity
	case isKey && !key.Internal:
		return http.StatusBadRequest
	case is[*ratelimit.StoreError](err):
		return http.StatusServiceUnavailable
	case isKey, is[*ratelimit.RuleError](err):
		return http.StatusInternalServerError
	}
	return 0
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// SetHeaders sets the fields of an answer to err, for programs that write the status and a body of their own: Retry-After after a refusal or
// a failure of the store, and the RateLimit fields after a refusal. Other errors, and nil, set nothing. Below a [Report], the fields know its other rules
// and its [WithJitter] if the writers in between have a method Unwrap, as those of routers do. Send clients the message of
// [ratelimit.TooManyRequestsError.ClientMessage].
//
// Retry-After and the times in the fields are whole seconds. They are rounded up, because a client that comes back too early is refused again.
// A refusal by a rule of limit 0 has no times. Under Concurrency nobody knows when permits come back: then Retry-After is 1 or more. RateLimit
// lists only the rules that refused; if all of these are Unreported, there are no RateLimit fields. Retry-After is no earlier than the end of any t,
// as section 6 of the draft asks for. It is later for a call that costs more than the first permits that come back.
func SetHeaders(w http.ResponseWriter, err error) { setHeaders(w.Header(), reporterIn(w), err) }

// setHeaders sets the fields, and returns the limits that refused.
func setHeaders(h http.Header, reporter *reporter, err error) (violated limits) {
	if Status(err) == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
	if !ok {
		return nil
	}
	late := reporter.draw()
	if !refusal.Never {
		h.Set("Retry-After", integer(late.seconds(max(time.Second, refusal.RetryAfter))))
	}
	all := reporter.limits()
	refused, longest := "", time.Duration(-1) // the limit that refuses for the longest time, apart from Concurrency
	for _, v := range refusal.Violations {
		policy, ok := v.Policy()
		if !ok {
			continue
		}
		id, more := idOf(v.Rule, v.Window), cmp.Or(v.More, v.RetryAfter) // a client made v without More from a server's answer
		l := limit{remaining: v.Remaining, more: time.Duration(late.seconds(more)) * time.Second, wait: v.RetryAfter}
		policy.Name = all.add(id, policy, l)
		violated.add(policy.Name, policy, l)
		if v.Never {
			v.RetryAfter = math.MaxInt64
		}
		if v.RetryAfter > longest && !policy.Concurrent {
			refused, longest = id, v.RetryAfter
		}
	}
	switch {
	case len(violated) > 0:
		h.Set("RateLimit-Policy", all.policies())
		h[rateLimit] = signed(late.part, refused, violated.left())
	case len(refusal.Violations) > 0:
		h.Del("RateLimit-Policy")
		h[rateLimit] = signed(0, "")
	}
	return violated
}

// Error answers a request whose call failed with err, if err is or wraps an error of the runtime: with [Status], the fields of [SetHeaders],
// and a problem in JSON. A refusal has the rule's message and the problem type quota-exceeded, unless only rules that are Unreported refuse. Error
// reports whether it answered. The caller has to answer any other error, including that of a context that has ended.
func Error(w http.ResponseWriter, r *http.Request, err error) bool {
	p := problem{Status: Status(err)}
	if p.Status == 0 {
		return false
	}
	p.Title = http.StatusText(p.Status)
	for _, l := range setHeaders(w.Header(), reporterOf(r), err) {
		p.ViolatedPolicies = append(p.ViolatedPolicies, l.name)
	}
	if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok {
		p.Detail = refusal.ClientMessage()
		if len(p.ViolatedPolicies) > 0 || len(refusal.Violations) == 0 {
			p.Type = QuotaExceeded
		}
	} else if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); ok && !never.Unreported {
		p.Detail = fmt.Sprintf("The request costs %d; at most %d are ever admitted.", never.Cost, never.Limit)
	}
	body, _ := json.Marshal(p) // texts and numbers never fail
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Del("Content-Length") // the handler may have set it for its own answer
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // fails only if the client has gone
	return true
}

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
