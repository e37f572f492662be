package behaviour_test

import (
	"context"
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Calls bring the limit of a rule with Computed. A peek, which lacks it, tells what is used. An override of the limit makes it known.
func TestPeekWithoutALimit(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rules := append(windows(0), ratelimit.Rule{Name: "amounts", Per: time.Hour, Amounts: true},
			ratelimit.Rule{Name: "bucket", Per: 1000 * time.Hour, Algorithm: ratelimit.TokenBucket})
		for _, rule := range s.known(rules...) {
			rule.Computed = true
			rules, q := wrap.NewRules("p.T.M", rule), ratelimit.Request{Rule: rule, Key: "k"}
			for range 3 {
				if err := wrap.TakeCharges(t.Context(), rules.On(s.limiter), rules, wrap.Charge{Key: "k", Cost: 2, Limit: 7}); err != nil {
					t.Fatal(rule.Name, err)
				}
			}
			if err := wrap.TakeCharges(t.Context(), rules.On(s.limiter), rules, wrap.Charge{Key: "k", Cost: 2, Limit: 7}); !errors.Is(err, ratelimit.ErrTooManyRequests) {
				t.Errorf("%s: got error %v beyond the limit", rule.Name, err)
			}
			d, err := s.limiter.Peek(t.Context(), q)
			if err != nil || !d.Allowed || d.Quotas[0].Limit != 0 || d.Quotas[0].Remaining != -6 {
				t.Errorf("%s: got %+v, %v", rule.Name, d, err)
			}
			override(t, s.limiter, rule.Name, ratelimit.Override{Limit: new(int64(10))})
			if d, err = s.limiter.Peek(t.Context(), q); err != nil || d.Quotas[0].Limit != 10 || d.Quotas[0].Remaining != 4 {
				t.Errorf("%s with an override: got %+v, %v", rule.Name, d, err)
			}
			s.limiter.Overrides().ClearLocal(rule.Name, "")
			err = s.limiter.Give(t.Context(), 4, q)
			if _, refused := errors.AsType[*ratelimit.RuleError](err); refused != (rule.Name == "bucket") || err != nil && !refused {
				t.Errorf("%s: give: %v", rule.Name, err)
			} else if d, err = s.limiter.Peek(t.Context(), q); !refused && (err != nil || d.Quotas[0].Remaining != -2) {
				t.Errorf("%s after 4 came back: got %+v, %v", rule.Name, d, err)
			}
			if n, err := s.limiter.Reset(t.Context(), q); n != 1 || err != nil {
				t.Errorf("%s: reset %d, %v", rule.Name, n, err)
			}
		}
	})
}

// A request cannot say its limit beside the rule, so a rule with Computed is an error in Allow and Wait, and refuses nobody by a limit of 0.
func TestRequestsWithoutALimit(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		l, rule := s.limiter, ratelimit.Rule{Name: "r", Computed: true, Per: time.Hour, Algorithm: s.window}
		if err := l.Check(rule); err != nil {
			t.Error(err)
		}
		for what, decide := range map[string]func(context.Context, ...ratelimit.Request) (ratelimit.Decision, error){"Allow": l.Allow, "Wait": l.Wait} {
			_, err := decide(t.Context(), ratelimit.Request{Rule: rule, Key: "k"})
			if wrong, ok := errors.AsType[*ratelimit.RuleError](err); !ok || wrong.Argument != "limit" {
				t.Errorf("%s: got %v", what, err)
			}
		}
		rule.Limit = 5
		if wrong, ok := errors.AsType[*ratelimit.RuleError](l.Check(rule)); !ok || wrong.Argument != "limit" {
			t.Errorf("with a limit: got %v", wrong)
		}
	})
}
