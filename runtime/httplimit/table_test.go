package httplimit_test

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// What the table of docs/errors.md says of each algorithm is what clients are told of calls every two seconds. Sections are those of
// draft-ietf-httpapi-ratelimit-headers-11:
//
//   - 3.1.1 to 3.1.3: q; qu, whose default is "requests"; and w, which is whole seconds, not 0
//   - 4.1.1 and 4.1.2: r and t
//   - 6: with an r of 0, Retry-After is no earlier than the end of the effective window t
func TestTableOfFields(t *testing.T) {
	const bucket = ratelimit.TokenBucket
	var table strings.Builder
	table.WriteString("| rule | call | `q` | `qu` | `w` | `r` | `t` | `Retry-After` | `X-RateLimit-Reset` |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range []struct {
		directive string
		rule      ratelimit.Rule
		cost      int64
		nth       int // the admitted call that the table has
	}{
		{"limit=10 per=1m", ratelimit.Rule{Limit: 10, Per: time.Minute}, 1, 7},
		{"limit=100000 per=1m cost=10000", ratelimit.Rule{Limit: 100_000, Per: time.Minute}, 10_000, 7},
		{"limit=10 per=1m distinct={phone}", ratelimit.Rule{Limit: 10, Per: time.Minute, Distinct: "{phone}"}, 1, 7},
		{"algorithm=fixed-window limit=10 per=1m", ratelimit.Rule{Limit: 10, Per: time.Minute, Algorithm: ratelimit.FixedWindow}, 1, 7},
		{`limit=10 cron="@hourly"`, ratelimit.Rule{Limit: 10, Cron: "@hourly"}, 1, 7},
		{"algorithm=sliding-counter limit=10 per=1m", ratelimit.Rule{Limit: 10, Per: time.Minute, Algorithm: ratelimit.SlidingCounter}, 1, 7},
		{"algorithm=token-bucket limit=10 per=1m", ratelimit.Rule{Limit: 10, Per: time.Minute, Algorithm: bucket}, 1, 7},
		{"algorithm=token-bucket limit=60 per=1m burst=10 prepay cost=30", ratelimit.Rule{Limit: 60, Per: time.Minute, Burst: 10, Algorithm: bucket, Prepay: true}, 30, 1},
		{"algorithm=token-bucket limit=10 per=1m warmup=1m", ratelimit.Rule{Limit: 10, Per: time.Minute, Warmup: time.Minute, Algorithm: bucket}, 1, 1},
		{"algorithm=leaky-bucket limit=10 per=1m", ratelimit.Rule{Limit: 10, Per: time.Minute, Algorithm: ratelimit.LeakyBucket}, 1, 1},
		{"algorithm=concurrency limit=4", ratelimit.Rule{Limit: 4, Per: time.Minute, Algorithm: ratelimit.Concurrency}, 1, 2},
	} {
		clock, calls := limittest.NewClock(), 0
		limiter := ratelimit.New(memstore.New(memstore.WithClock(clock.Now)))
		row.rule.Name = "r"
		h := httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := ratelimit.Request{Rule: row.rule, Key: "ann", Cost: row.cost}
			if row.rule.Distinct != "" {
				q.Member = fmt.Sprint(calls)
			}
			d, err := limiter.Allow(r.Context(), q)
			if err == nil && !d.Allowed {
				err = &ratelimit.TooManyRequestsError{RetryAfter: d.RetryAfter, Violations: d.Violations}
			}
			httplimit.Answer(w, r, err)
		}), httplimit.WithXRateLimit())
		for {
			w := get(h, "")
			if calls++; calls == row.nth || w.Code != http.StatusOK {
				policy, left, header := w.Header().Get("RateLimit-Policy"), w.Header().Get("RateLimit"), w.Header()
				r, until, retry := of(left, "r"), of(left, "t"), header.Get("Retry-After")
				fmt.Fprintf(&table, "| `%s` | %d: %d | %s | %s | %s | %s | %s | %s | %s |\n", row.directive, calls, w.Code, of(policy, "q"), of(policy, "qu"),
					of(policy, "w"), r, until, retry, header.Get("X-RateLimit-Reset"))
				if w.Code != http.StatusOK && (r != "0" || until != "" && until != retry) { // a refused call of one permit
					t.Errorf("%s: r is %s, t is %s, and Retry-After is %s: see section 6", row.directive, r, until, retry)
				}
			}
			if w.Code != http.StatusOK {
				break
			}
			clock.Advance(2 * time.Second)
		}
	}
	page, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n"+table.String()+"\n") {
		t.Errorf("docs/errors.md lacks this table:\n%s", table.String())
	}
}

// of returns the value of a parameter in a field of one item, or "".
func of(field, name string) string {
	found := regexp.MustCompile(";" + name + `=([^;,]*)`).FindStringSubmatch(field)
	return cmp.Or(append(found, "", "")[min(1, len(found))], "")
}
