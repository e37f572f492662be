package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// reused makes texts whose memory is used again after the call, as servers of fasthttp do.
type reused struct{ buffers [][]byte }

func (r *reused) text(s string) string {
	if s == "" {
		return ""
	}
	b := []byte(s)
	r.buffers = append(r.buffers, b)
	return unsafe.String(&b[0], len(b))
}

// over ends a call: its texts become others.
func (r *reused) over() {
	for _, b := range r.buffers {
		for i := range b {
			b[i] = '?'
		}
	}
	r.buffers = nil
}

// request returns a request with the same texts, in memory that is used again.
func (r *reused) request(q ratelimit.Request) ratelimit.Request {
	q.Key, q.Member = r.text(q.Key), r.text(q.Member)
	for _, text := range []*string{&q.Rule.Name, &q.Rule.Key, &q.Rule.Cron, &q.Rule.TZ, &q.Rule.Distinct, &q.Rule.Message} {
		*text = r.text(*text)
	}
	return q
}

// A rule counts the keys and members of its calls, also if their memory is used again after each call.
func TestTextsThatAreUsedAgainAreCounted(t *testing.T) {
	hour := 3000 * time.Hour
	rules := []ratelimit.Rule{
		{Name: "sliding", Key: "{user}", Limit: 3, Per: hour},
		{Name: "amounts", Key: "{user}", Limit: 3, Per: hour, Amounts: true},
		{Name: "fixed", Key: "{user}", Limit: 3, Per: hour, Algorithm: ratelimit.FixedWindow},
		{Name: "calendar", Key: "{user}", Limit: 3, Cron: "0 0 1 1 *", TZ: "Asia/Shanghai"},
		{Name: "bucket", Key: "{user}", Limit: 3, Per: hour, Algorithm: ratelimit.TokenBucket},
		{Name: "counter", Key: "{user}", Limit: 3, Per: hour, Algorithm: ratelimit.SlidingCounter},
		{Name: "running", Key: "{user}", Limit: 3, Per: time.Hour, Algorithm: ratelimit.Concurrency},
		{Name: "leased", Key: "{user}", Limit: 3, Per: hour, Lease: time.Second},
		{Name: "here", Key: "{user}", Limit: 3, Per: hour, Scope: ratelimit.ScopeInstance},
		{Name: "members", Key: "{user}", Limit: 3, Per: hour, Distinct: "{friend}"},
		{Name: "yearly", Key: "{user}", Limit: 3, Cron: "0 0 1 1 *", Distinct: "{friend}"},
	}
	onEveryStore(t, func(t *testing.T, s *subject) {
		var texts reused
		for call := range 6 {
			for user := range 3 {
				for _, rule := range rules {
					q := ratelimit.Request{Rule: rule, Key: fmt.Sprintf("user%d", user)}
					if rule.Distinct != "" {
						q.Member = fmt.Sprintf("friend%d", call)
					}
					d, err := s.limiter.Allow(t.Context(), texts.request(q))
					texts.over()
					if err != nil || d.Allowed != (call < 3) {
						t.Errorf("%s: call %d of user %d: allowed %t, error %v", rule.Name, call, user, d.Allowed, err)
					}
					if !d.Allowed && (len(d.Violations) != 1 || d.Violations[0].Key != q.Key || d.Violations[0].Rule != rule.Name) {
						t.Errorf("%s: the refusal of %s says %+v", rule.Name, q.Key, d.Violations)
					}
				}
			}
		}
	})
}

// A charge changes the count of its call.
func TestChargesOfTextsThatAreUsedAgain(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		var texts reused
		for _, rule := range []ratelimit.Rule{
			{Name: "sliding", Limit: 10, Per: 3000 * time.Hour},
			{Name: "leased", Limit: 10, Per: 3000 * time.Hour, Lease: time.Second},
			{Name: "here", Limit: 10, Per: 3000 * time.Hour, Scope: ratelimit.ScopeInstance},
		} {
			for i, charges := range []int64{0, 4} {
				rules := wrap.NewRules("p.T.M", rule)
				taken, err := wrap.Begin(t.Context(), rules.On(s.limiter), rules, wrap.Charge{Key: texts.text("ann"), Cost: charges})
				if texts.over(); err != nil {
					t.Fatal(err)
				}
				if taken.Settle(t.Context(), 3); s.used(t, rule, "ann") != int64(3+3*i) {
					t.Errorf("%s: %d permits of ann are used after %d settlements of 3", rule.Name, s.used(t, rule, "ann"), i+1)
				}
			}
			d, err := s.limiter.Allow(t.Context(), texts.request(ratelimit.Request{Rule: rule, Key: "bob"}))
			texts.over()
			if err = errors.Join(err, d.Refund(t.Context())); err != nil || s.used(t, rule, "bob") != 0 {
				t.Errorf("%s: %d permits of bob are used after a refund; error %v", rule.Name, s.used(t, rule, "bob"), err)
			}
		}
		rule := ratelimit.Rule{Name: "members", Limit: 1, Per: 3000 * time.Hour, Distinct: "{friend}"}
		for range 3 {
			d := s.admit(t, texts.request(ratelimit.Request{Rule: rule, Key: "ann", Member: "bob"}))
			texts.over()
			if err := d.Refund(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.admit(t, ratelimit.Request{Rule: rule, Key: "ann", Member: "eve"})
			if _, err := s.limiter.Reset(t.Context(), ratelimit.Request{Rule: rule, Key: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Settings hold for the rule and the key for which they were made.
func TestSettingsOfTextsThatAreUsedAgain(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		var texts reused
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "sliding", Limit: 10, Per: 3000 * time.Hour}, Key: "ann"}
		zero := int64(0)
		for what, edit := range map[string]func(ctx context.Context, q ratelimit.Request) error{
			"Block": func(ctx context.Context, q ratelimit.Request) error { return s.limiter.Block(ctx, time.Hour, q) },
			"Pause": func(ctx context.Context, q ratelimit.Request) error { return s.limiter.Pause(ctx, time.Hour, q) },
			"Set": func(ctx context.Context, q ratelimit.Request) error {
				return s.limiter.Overrides().Set(ctx, q.Rule.Name, ratelimit.Override{Key: q.Key, Limit: &zero})
			},
			"SetLocal": func(_ context.Context, q ratelimit.Request) error {
				return s.limiter.Overrides().SetLocal(q.Rule.Name, ratelimit.Override{Key: q.Key, Limit: &zero})
			},
		} {
			q.Key = what
			ctx := ratelimit.WithActor(t.Context(), texts.text("kim"), texts.text("abuse"))
			err := edit(ctx, texts.request(q))
			if texts.over(); err != nil {
				t.Fatal(err)
			}
			s.refuse(t, q)
		}
		set, err := s.limiter.Overrides().List(t.Context())
		if err != nil || len(set) != 1 || set[0].Rule != "sliding" || set[0].Key != "Set" || set[0].By != "kim" || set[0].Reason != "abuse" {
			t.Errorf("the overrides are %+v; error %v", set, err)
		}
		if blocked, err := s.limiter.Blocked(t.Context()); err != nil || len(blocked) != 1 || blocked[0].Key != "Block" {
			t.Errorf("blocked is %+v; error %v", blocked, err)
		}
	})
}

// What a program may keep of a decision names the key of its call: quotas, reports, errors, messages and triggers.
func TestAnswersToTextsThatAreUsedAgain(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		var texts reused
		var hits []ratelimit.Trigger
		limiter := ratelimit.New(s.store, ratelimit.WithTrigger(func(_ context.Context, hit ratelimit.Trigger) { hits = append(hits, hit) }))
		rule := ratelimit.Rule{Name: "sliding", Key: "{user}", Limit: 1, Per: 3000 * time.Hour}
		watched := ratelimit.Rule{Name: "watched", Limit: 1, Per: 3000 * time.Hour, Mode: ratelimit.ModeTrigger}
		ctx, report := ratelimit.WithReport(t.Context())
		for range 2 {
			peek, err := limiter.Peek(ctx, texts.request(ratelimit.Request{Rule: rule, Key: "ann"}))
			if texts.over(); err != nil || peek.Quotas[0].Key != "ann" {
				t.Errorf("Peek: %+v, error %v", peek, err)
			}
			_, err = limiter.Allow(ctx, texts.request(ratelimit.Request{Rule: rule, Key: "ann"}), texts.request(ratelimit.Request{Rule: watched, Key: "ann"}))
			if texts.over(); err != nil {
				t.Fatal(err)
			}
		}
		if all := report.Quotas(); len(all) != 2 || all[0].Key != "ann" || all[1].Key != "ann" {
			t.Errorf("the report is %+v", all)
		}
		if len(hits) != 1 || hits[0].Key != "ann" {
			t.Errorf("the triggers are %+v", hits)
		}
		key := texts.text("ann")
		rules := wrap.NewRules("p.T.M", rule)
		err := wrap.Take(t.Context(), rules.On(limiter), rules, key)
		err = wrap.Describe(rules.On(limiter), err, wrap.Shown(rules.On(limiter), key))
		texts.over()
		refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
		if !ok || refusal.Message != "ann" || refusal.Violations[0].Key != "ann" {
			t.Errorf("the refusal is %+v", err)
		}
		_, err = limiter.Allow(t.Context(), texts.request(ratelimit.Request{Rule: rule, Key: "ann", Cost: 2}))
		texts.over()
		if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); !ok || never.Key != "ann" {
			t.Errorf("a cost above the limit gives %v", err)
		}
	})
}
