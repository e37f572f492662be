package httplimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
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

// Error answers a request whose call failed with err, if err is or wraps an error of the runtime. It reports whether it answered. The caller
// has to answer any other error, including that of a context that has ended.
//
//	*ratelimit.TooManyRequestsError  429, the rule's message, Retry-After, RateLimit fields, problem type quota-exceeded
//	*ratelimit.NeverAdmissibleError  422
//	*ratelimit.KeyError              400; 500 if it is Missing
//	*ratelimit.StoreError            503, Retry-After: 1
//	*ratelimit.RuleError             500
//
// Retry-After and the times in the fields are whole seconds. They are rounded up, because a client that comes back too early is refused again.
// A refusal by a rule of limit 0 has no times. Under Concurrency nobody knows when permits come back: then Retry-After is 1 or more. RateLimit lists only the rules that refused.
func Error(w http.ResponseWriter, r *http.Request, err error) bool {
	p := problem{}
	if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok {
		p = refused(w, r, refusal)
	} else if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); ok {
		p.Status = http.StatusUnprocessableEntity
		p.Detail = fmt.Sprintf("The request costs %d; at most %d are ever admitted.", never.Cost, never.Limit)
	} else if e, ok := errors.AsType[*ratelimit.KeyError](err); ok {
		if p.Status = http.StatusBadRequest; e.Missing {
			p.Status = http.StatusInternalServerError
		}
	} else if _, ok := errors.AsType[*ratelimit.StoreError](err); ok {
		p.Status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	} else if _, ok := errors.AsType[*ratelimit.RuleError](err); ok {
		p.Status = http.StatusInternalServerError
	} else {
		return false
	}
	p.Title = http.StatusText(p.Status)
	body, _ := json.Marshal(p) // texts and numbers never fail
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Del("Content-Length") // the handler may have set it for its own answer
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // fails only if the client has gone
	return true
}

// refused sets the header of a refusal and returns its problem.
func refused(w http.ResponseWriter, r *http.Request, refusal *ratelimit.TooManyRequestsError) problem {
	p := problem{Status: http.StatusTooManyRequests, Type: QuotaExceeded, Detail: refusal.Message}
	if !refusal.Never {
		w.Header().Set("Retry-After", strconv.FormatInt(max(1, seconds(refusal.RetryAfter)), 10))
	}
	reporter := reporterOf(r)
	all := reporter.limits()
	var violated limits
	for _, v := range refusal.Violations {
		if policy, ok := v.Policy(); ok {
			name := all.add(v.Rule+"\x00"+v.Window, policy, v.Remaining, v.RetryAfter)
			policy.Name = name
			violated.add(name, policy, v.Remaining, v.RetryAfter)
		}
	}
	for _, l := range violated {
		p.ViolatedPolicies = append(p.ViolatedPolicies, l.name)
	}
	reporter.write(w.Header(), all, violated)
	return p
}

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
