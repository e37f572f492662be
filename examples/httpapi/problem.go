package main

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"strconv"
	"strings"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// problem is the body of an error: RFC 9457, application/problem+json.
type problem struct {
	Type             string   `json:"type,omitempty"` // absent: the title says it all
	Title            string   `json:"title"`
	Status           int      `json:"status"`
	Detail           string   `json:"detail,omitempty"`
	ViolatedPolicies []string `json:"violated-policies,omitempty"`

	retryAfter time.Duration // 0: to retry is pointless
}

// quotaExceeded is a problem type of the IETF draft "RateLimit header fields for HTTP".
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// writeError answers a request that failed.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has gone
	}
	p := describe(err)
	p.Title = http.StatusText(p.Status)
	if p.Status >= http.StatusInternalServerError {
		log.Printf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", seconds(p.retryAfter))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // fails only if the client has gone
}

// describe turns an error of the library, or of its limits, into a problem. A key that lacks the user means that one has
// to log in.
func describe(err error) problem {
	if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok {
		p := problem{Status: http.StatusTooManyRequests, Type: quotaExceeded, Detail: refusal.Message}
		for _, v := range refusal.Violations {
			p.ViolatedPolicies = append(p.ViolatedPolicies, v.Rule)
		}
		p.retryAfter = refusal.RetryAfter
		return p
	}
	if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); ok {
		return problem{Status: http.StatusForbidden, Detail: "This is more than " + never.Rule + " ever admits."}
	}
	if _, ok := errors.AsType[*ratelimit.StoreError](err); ok {
		return problem{Status: http.StatusServiceUnavailable, retryAfter: time.Second}
	}
	if bad, ok := errors.AsType[*ratelimit.KeyError](err); ok {
		if strings.Contains(bad.Expr, "userID") {
			return problem{Status: http.StatusUnauthorized}
		}
		return problem{Status: http.StatusBadRequest, Detail: strings.Trim(bad.Expr, "{}") + " is missing."}
	}
	if errors.Is(err, errUnknownBook) {
		return problem{Status: http.StatusNotFound, Detail: "There is no such book."}
	}
	return problem{Status: http.StatusInternalServerError}
}

// seconds rounds up: a client that comes back earlier is refused again.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
