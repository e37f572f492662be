package httplimit_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// A handler behind Middleware adds to what its request was charged, by all rules, and settles it. When it has returned, the request takes no more. The
// fields of the response say what is left then.
func TestChargeOfAHandler(t *testing.T) {
	limiter := ratelimit.New(memstore.New())
	rules := []ratelimit.Rule{{Name: "short", Limit: 10, Per: time.Hour}, {Name: "long", Limit: 100, Per: 24 * time.Hour}}
	left := func(rule int) int64 {
		d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: rules[rule]})
		if err != nil {
			t.Fatal(err)
		}
		return d.Quotas[0].Remaining
	}
	var charge *ratelimit.Charge
	handler := httplimit.Middleware(limiter, nil, rules)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		charge = ratelimit.ChargeFrom(r.Context())
		if err := charge.Add(r.Context(), 4); err != nil || left(0) != 5 || left(1) != 95 {
			t.Errorf("error %v, %d and %d are left; want 5 and 95", err, left(0), left(1))
		}
		httplimit.Answer(w, r, charge.Add(r.Context(), 6))
	}))
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") != "3600" {
		t.Errorf("got %d with %v", answer.Code, answer.Header())
	}
	if wrong, ok := errors.AsType[*ratelimit.RuleError](charge.Add(t.Context(), 1)); !ok || wrong.Argument != "add" {
		t.Errorf("after the handler: got error %v", wrong)
	}
	if err := charge.Settle(t.Context(), 2); err != nil || left(0) != 8 || left(1) != 98 {
		t.Errorf("error %v, %d and %d are left after a settlement; want 8 and 98", err, left(0), left(1))
	}
}

// The charge of an outer handler stays what it is: that of the outer Middleware, or of the program.
func TestChargeOfAnOuterHandler(t *testing.T) {
	limiter := ratelimit.New(memstore.New())
	rule := func(name string) []ratelimit.Rule { return []ratelimit.Rule{{Name: name, Limit: 10, Per: time.Hour}} }
	used := func(name string) int64 {
		d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: rule(name)[0]})
		if err != nil {
			t.Fatal(err)
		}
		return 10 - d.Quotas[0].Remaining
	}
	var handler http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := ratelimit.ChargeFrom(r.Context()).Add(r.Context(), 4); err != nil {
			t.Error(err)
		}
	})
	handler = httplimit.Middleware(limiter, nil, rule("inner"))(handler)
	handler = httplimit.Middleware(limiter, nil, rule("outer"))(handler)
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if used("outer") != 5 || used("inner") != 1 {
		t.Errorf("outer has used %d, inner %d; want 5 and 1", used("outer"), used("inner"))
	}
	ctx, own := ratelimit.WithCharge(t.Context())
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	if err := own.Settle(ctx, 1); err != nil || used("outer") != 6 || used("inner") != 2 {
		t.Errorf("error %v, outer has used %d, inner %d; want 6 and 2", err, used("outer"), used("inner"))
	}
}
