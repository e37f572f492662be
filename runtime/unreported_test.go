package ratelimit_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Clients learn of an unreported rule only its delay. The program's own violations and peeks have it.
func TestUnreported(t *testing.T) {
	secret := ratelimit.Rule{Name: "secret", Limit: 1, Per: time.Hour, Message: "Guess again.", Unreported: true}
	known := ratelimit.Rule{Name: "known", Limit: 1, Per: time.Minute, Message: "Slow down."}
	for name, test := range map[string]struct {
		rules   []ratelimit.Rule
		message string
		reports int
	}{
		"alone":  {[]ratelimit.Rule{secret}, "Too many requests.", 0},
		"first":  {[]ratelimit.Rule{secret, known}, "Slow down.", 1},
		"second": {[]ratelimit.Rule{known, secret}, "Slow down.", 1},
	} {
		t.Run(name, func(t *testing.T) {
			limiter, _ := limittest.New(t)
			var requests []ratelimit.Request
			for _, r := range test.rules {
				requests = append(requests, ratelimit.Request{Rule: r})
			}
			ctx, report := ratelimit.WithReport(t.Context())
			if d, err := limiter.Allow(ctx, requests...); err != nil || !d.Allowed {
				t.Fatalf("got %+v, %v", d, err)
			}
			d, err := limiter.Allow(ctx, requests...)
			if err != nil || d.Allowed || len(d.Violations) != len(test.rules) || d.RetryAfter != time.Hour {
				t.Fatalf("got %+v, %v", d, err)
			}
			for _, v := range d.Violations {
				if _, told := v.Policy(); told != (v.Rule == "known") {
					t.Errorf("the policy of %s is told: %v", v.Rule, told)
				}
			}
			if got := report.Quotas(); len(got) != test.reports {
				t.Errorf("the report has %+v", got)
			}
			peeked, err := limiter.Peek(t.Context(), requests...)
			if err != nil || len(peeked.Quotas) != len(test.rules) {
				t.Errorf("a peek has %+v, %v", peeked.Quotas, err)
			}
			for _, q := range peeked.Quotas {
				if _, told := q.Policy(); told != (q.Rule == "known") {
					t.Errorf("the policy of %s is told: %v", q.Rule, told)
				}
			}
			e := &ratelimit.TooManyRequestsError{Message: "Guess again.", RetryAfter: d.RetryAfter, Violations: d.Violations}
			if got := e.ClientMessage(); got != test.message {
				t.Errorf("clients read %q; expected %q", got, test.message)
			}
		})
	}
	own := &ratelimit.TooManyRequestsError{Message: "Own.", Violations: []ratelimit.Violation{{Rule: "far"}}}
	if got := own.ClientMessage(); got != "Own." {
		t.Errorf("got %q", got)
	}
	limiter, _ := limittest.New(t)
	_, err := limiter.Allow(t.Context(), ratelimit.Request{Rule: secret, Cost: 2})
	if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); !ok || !never.Unreported || never.Limit != 1 {
		t.Errorf("got %#v", err)
	}
}

// take makes n calls of a method, and returns the refusal of the last one.
func take(t *testing.T, l *ratelimit.Limiter, rules *wrap.Rules, n int, keys ...string) *ratelimit.TooManyRequestsError {
	t.Helper()
	var err error
	for range n {
		err = wrap.Take(t.Context(), rules.On(l), rules, keys...)
	}
	refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
	if !ok {
		t.Fatalf("got %v; expected a refusal", err)
	}
	return refusal
}

// The program learns all about an unreported rule that refuses. Clients get the message of the other rule with the longest delay.
func TestClientMessage(t *testing.T) {
	const hidden, common = "Five logins a minute.", "Too many requests."
	for name, test := range map[string]struct {
		rules         []ratelimit.Rule
		message, told string
	}{
		"no such rule":   {[]ratelimit.Rule{{Per: time.Minute, Limit: 1, Message: "One a minute."}}, "One a minute.", "One a minute."},
		"only such":      {[]ratelimit.Rule{{Per: time.Minute, Limit: 1, Message: hidden, Unreported: true}}, hidden, common},
		"in the way":     {[]ratelimit.Rule{{Per: time.Minute, Limit: 9, Message: "Slow down."}, {Name: "b", Per: time.Hour, Limit: 1, Message: hidden, Unreported: true}}, hidden, common},
		"without a text": {[]ratelimit.Rule{{Per: time.Minute, Limit: 1}, {Name: "b", Per: time.Hour, Limit: 1, Message: hidden, Unreported: true}}, hidden, common},
		"the longest": {[]ratelimit.Rule{{Name: "a", Per: time.Second, Limit: 1, Message: "Slow down."}, {Name: "b", Per: time.Minute, Limit: 1, Message: "One a minute."},
			{Name: "c", Per: time.Hour, Limit: 1, Message: hidden, Unreported: true}}, hidden, "One a minute."},
		"a shorter one": {[]ratelimit.Rule{{Name: "a", Per: time.Second, Limit: 1, Message: hidden, Unreported: true}, {Name: "b", Per: time.Minute, Limit: 1, Message: "One a minute."}},
			"One a minute.", "One a minute."},
		"never": {[]ratelimit.Rule{{Name: "a", Per: time.Hour, Message: hidden, Unreported: true}, {Name: "b", Per: time.Hour, Message: "Closed."}}, hidden, "Closed."},
	} {
		t.Run(name, func(t *testing.T) {
			l := ratelimit.New(memstore.New())
			refusal := take(t, l, wrap.NewRules("p.T.M", test.rules...), 2, make([]string, len(test.rules))...)
			if refusal.Message != test.message || refusal.ClientMessage() != test.told {
				t.Errorf("the program gets %q, clients %q; expected %q and %q", refusal.Message, refusal.ClientMessage(), test.message, test.told)
			}
			if test.message == hidden && !strings.Contains(refusal.Error(), "Five logins a minute") {
				t.Errorf("the text is %q", refusal)
			}
			for _, v := range refusal.Violations {
				of := slices.IndexFunc(test.rules, func(r ratelimit.Rule) bool { return cmp.Or(r.Name, "p.T.M") == v.Rule })
				if _, ok := v.Policy(); ok == test.rules[of].Unreported {
					t.Errorf("clients learn about %v: %v", v, ok)
				}
			}
		})
	}
	if made := (&ratelimit.TooManyRequestsError{Message: "no"}); made.ClientMessage() != "no" {
		t.Errorf("a refusal that a program made says %q", made.ClientMessage())
	}
}

// A message that a call computes is that of its rule, also for clients.
func TestClientMessageOfACall(t *testing.T) {
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Name: "a", Per: time.Minute, Limit: 1}, ratelimit.Rule{Name: "b", Per: time.Hour, Limit: 1, Unreported: true})
	l := ratelimit.New(memstore.New())
	refusal := take(t, l, rules, 2, "", "")
	_ = wrap.Describe(rules.On(l), refusal, "Slow down, ann.", "Account ann is watched.")
	if refusal.Message != "Account ann is watched." || refusal.ClientMessage() != "Slow down, ann." {
		t.Errorf("the program gets %q, clients %q", refusal.Message, refusal.ClientMessage())
	}
}

// A report has no unreported rule, whatever an override changes. Peek, events and the fleet's rules have it.
func TestUnreportedRules(t *testing.T) {
	l := ratelimit.New(memstore.New())
	hidden := ratelimit.Rule{Name: "login", Limit: 5, Per: time.Minute, Unreported: true}
	trial := ratelimit.Rule{Name: "trial", Limit: 5, Per: time.Minute, Unreported: true, Mode: ratelimit.ModeShadow}
	plain := ratelimit.Rule{Name: "calls", Limit: 50, Per: time.Minute}
	requests := []ratelimit.Request{{Rule: hidden}, {Rule: trial}, {Rule: plain, Cost: 2}}
	for _, change := range []ratelimit.Override{{Factor: 1}, {Limit: new(int64(7))}, {Mode: new(ratelimit.ModeShadow)}} {
		if err := l.Overrides().Set(t.Context(), hidden.Name, change); err != nil {
			t.Fatal(err)
		}
		ctx, report := ratelimit.WithReport(t.Context())
		d, err := l.Allow(ctx, requests...)
		if quotas := report.Quotas(); err != nil || len(quotas) != 1 || quotas[0].Rule != "calls" || quotas[0].Cost != 2 {
			t.Errorf("%+v: the report is %+v, error %v", change, quotas, err)
		}
		if len(d.Quotas) != 3 {
			t.Errorf("%+v: the decision has %+v", change, d.Quotas)
		}
		d, err = l.Peek(t.Context(), requests...)
		if err != nil || len(d.Quotas) != 3 || d.Quotas[0].Rule != "login" {
			t.Fatalf("%+v: Peek has %+v, error %v", change, d.Quotas, err)
		}
		if _, ok := d.Quotas[0].Policy(); ok {
			t.Errorf("%+v: clients learn about %+v", change, d.Quotas[0])
		}
	}
}

// Rules of one count may differ in whether clients learn about them, as in their message. The first one's word holds.
func TestUnreportedRuleOfACommonCount(t *testing.T) {
	rule := ratelimit.Rule{Name: "login", Limit: 5, Per: time.Minute, Unreported: true}
	other := rule
	other.Unreported = false
	ctx, report := ratelimit.WithReport(t.Context())
	d, err := ratelimit.New(memstore.New()).Allow(ctx, ratelimit.Request{Rule: rule}, ratelimit.Request{Rule: other})
	if err != nil || !d.Allowed || d.Quotas[0].Remaining != 3 || len(report.Quotas()) != 0 {
		t.Errorf("got %+v, error %v; the report has %+v", d, err, report.Quotas())
	}
}
