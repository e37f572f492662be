package httplimit_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// opaque is the writer of a router that has no method Unwrap.
type opaque struct{ http.ResponseWriter }

// answers are the ways in which a program answers a refusal.
var answers = map[string]func(w http.ResponseWriter, r *http.Request, err error){
	"Answer": httplimit.Answer,
	"SetHeaders": func(w http.ResponseWriter, _ *http.Request, err error) {
		httplimit.SetHeaders(unwrapper{w}, err)
		w.WriteHeader(httplimit.Status(err))
	},
	"SetHeaders of a writer without Unwrap": func(w http.ResponseWriter, _ *http.Request, err error) {
		httplimit.SetHeaders(opaque{w}, err)
		opaque{w}.WriteHeader(httplimit.Status(err))
	},
}

// No answer tells a client of an unreported rule, whatever it looks like. Only its delay counts.
func TestUnreportedRule(t *testing.T) {
	const secret = "hidden"
	hidden := ratelimit.Rule{Name: secret, Limit: 1, Per: time.Hour, Message: secret, Unreported: true}
	calls := ratelimit.Rule{Name: "calls", Limit: 1, Per: time.Minute, Message: "Slow down."}
	many := ratelimit.Rule{Name: "many", Limit: 77, Per: time.Minute, Message: "Slow down."}
	const none = `{"title":"Too Many Requests","status":429,"detail":"Too many requests."}` + "\n"
	const some = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,` +
		`"detail":"Slow down.","violated-policies":["calls"]}` + "\n"
	for name, test := range map[string]struct {
		rules            []ratelimit.Rule
		before, xBefore  string // RateLimit and X-RateLimit-Remaining of the admitted call
		after, xAfter    string // of the refused one
		policies, xLimit string
		retry, body      string
	}{
		"alone":         {rules: []ratelimit.Rule{hidden}, retry: "3600", body: none},
		"beside others": {rules: []ratelimit.Rule{many, hidden}, before: `"many";r=76;t=60`, xBefore: "76", retry: "3600", body: none},
		"with one": {rules: []ratelimit.Rule{many, hidden, calls}, before: `"many";r=76;t=60, "calls";r=0;t=60`, xBefore: "0", after: `"calls";r=0;t=60`,
			xAfter: "0", policies: `"many";q=77;w=60, "calls";q=1;w=60`, xLimit: "1", retry: "3600", body: some},
		"of limit 0": {rules: []ratelimit.Rule{{Name: secret, Per: time.Hour, Message: secret, Unreported: true}, many}, body: none},
	} {
		for way, answer := range answers {
			t.Run(name+" by "+way, func(t *testing.T) {
				now := start
				h := httplimit.Middleware(newLimiter(&now), nil, test.rules, httplimit.WithXRateLimit(), httplimit.WithErrorHandler(answer))(ok)
				if test.rules[0].Limit > 0 {
					want(t, get(h, ""), 200, map[string]string{"RateLimit": test.before, "X-RateLimit-Remaining": test.xBefore})
				}
				policies := test.policies
				if strings.HasSuffix(way, "without Unwrap") { // SetHeaders does not see the other rules
					policies = strings.TrimPrefix(policies, `"many";q=77;w=60, `)
				}
				w := get(h, "")
				want(t, w, 429, map[string]string{"RateLimit-Policy": policies, "RateLimit": test.after, "Retry-After": test.retry,
					"X-RateLimit-Limit": test.xLimit, "X-RateLimit-Remaining": test.xAfter})
				if got := w.Body.String(); way == "Answer" && got != test.body {
					t.Errorf("got %s", got)
				}
				if all := fmt.Sprint(w.Result().Header, w.Body); strings.Contains(all, secret) {
					t.Errorf("the answer is %s", all)
				}
			})
		}
	}
}

// A call that costs too much learns neither its cost nor the limit of an unreported rule.
func TestUnreportedCost(t *testing.T) {
	now := start
	rule := ratelimit.Rule{Name: "hidden", Limit: 5, Per: time.Hour, Unreported: true}
	_, err := newLimiter(&now).Allow(t.Context(), ratelimit.Request{Rule: rule, Cost: 6})
	w := get(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { httplimit.Answer(w, r, err) }), "")
	want(t, w, 422, nil)
	if got := w.Body.String(); got != `{"title":"Unprocessable Entity","status":422}`+"\n" {
		t.Errorf("got %s", got)
	}
}
