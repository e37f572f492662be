package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// A call that brings NoLimit is charged nothing by that rule, whatever has been charged, and by the other rules as ever. A settlement and a refund
// leave the rule alone, too.
func TestNoLimit(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		q, other := ratelimit.Request{Rule: rule, Key: "k", Member: "a"}, ratelimit.Rule{Name: "beside-" + rule.Name, Limit: 100, Per: time.Hour, Algorithm: s.window}
		for range 3 {
			s.admit(t, q)
		}
		s.refuse(t, ratelimit.Request{Rule: rule, Key: "k", Member: "b"})
		before := s.left(t, q)
		rule.Limit, rule.Computed = 0, true
		rules := wrap.NewRules("p.T.M", rule, other).WithCost(rule.Name, other.Name)
		for i := range 5 {
			charges := []wrap.Charge{{Key: "k", Member: fmt.Sprint(i), Cost: 1, Limit: ratelimit.NoLimit}, {Key: "k", Cost: 2}}
			taken, err := wrap.Begin(t.Context(), rules.On(s.limiter), rules, charges...)
			if err != nil || taken.Applies(0) || !taken.Applies(1) {
				t.Fatalf("call %d: error %v; the rules do not apply as they should", i, err)
			}
			taken.Settle(t.Context(), 50, 3)
			taken.Release(t.Context())
		}
		if left, used := s.left(t, q), 100-s.left(t, ratelimit.Request{Rule: other, Key: "k"}); left != before || used != 15 {
			t.Errorf("%d are left after calls without a limit, want %d; the other rule was charged %d, want 15", left, before, used)
		}
	})
}

// A block and a pause of the key refuse also a call that brings NoLimit, and no call after their end. It is charged nothing by any of these.
func TestBlocksAndPausesOfCallsWithoutALimit(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := computed("plan")
		rule.Block, rule.Pausable = time.Hour, true
		ctx := t.Context()
		for name, test := range map[string]struct {
			begin, end func(q ratelimit.Request) error
		}{
			"a block set by hand": {
				func(q ratelimit.Request) error { return s.limiter.Block(ctx, time.Hour, q) },
				func(q ratelimit.Request) error { return s.limiter.Unblock(ctx, q) },
			},
			"block=, below 10,000": {
				func(q ratelimit.Request) error {
					return refusedOnce(s.take(ctx, rule, q.Key, 0, 1), s.take(ctx, rule, q.Key, 1, 1), s.take(ctx, rule, q.Key, 1, 1))
				},
				func(q ratelimit.Request) error { _, err := s.limiter.Reset(ctx, q); return err },
			},
			"block=, above 10,000": {
				func(q ratelimit.Request) error {
					return refusedOnce(nil, s.take(ctx, rule, q.Key, 20_000, 20_000), s.take(ctx, rule, q.Key, 20_000, 1))
				},
				func(q ratelimit.Request) error { _, err := s.limiter.Reset(ctx, q); return err },
			},
			"a pause": {
				func(q ratelimit.Request) error { return s.limiter.Pause(ctx, time.Hour, q) },
				func(q ratelimit.Request) error { return s.limiter.Resume(ctx, q) },
			},
			"a pause by a setting": {
				func(q ratelimit.Request) error { q.Rule.Pausable = false; return s.limiter.Pause(ctx, time.Hour, q) },
				func(q ratelimit.Request) error { return s.limiter.Resume(ctx, q) },
			},
		} {
			q := ratelimit.Request{Rule: rule, Key: name}
			if err := test.begin(q); err != nil {
				t.Fatal(name, err)
			}
			err := s.take(ctx, rule, name, ratelimit.NoLimit, 1)
			refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
			if !ok || refusal.Never || refusal.RetryAfter < 59*time.Minute || len(refusal.Violations) != 1 {
				t.Errorf("%s: got %v", name, err)
			}
			if err := test.end(q); err != nil {
				t.Fatal(name, err)
			}
			before := s.peek(t, q).Quotas
			if err := s.take(ctx, rule, name, ratelimit.NoLimit, 1); err != nil {
				t.Errorf("%s: after its end: %v", name, err)
			}
			if after := s.peek(t, q).Quotas; after[0].Remaining != before[0].Remaining {
				t.Errorf("%s: calls without a limit changed %+v to %+v", name, before, after)
			}
		}
	})
}

// refusedOnce returns an error unless the last call was refused, and the one before was not.
func refusedOnce(_, first, last error) error {
	if first != nil || !errors.Is(last, ratelimit.ErrTooManyRequests) {
		return fmt.Errorf("got %v, then %v", first, last)
	}
	return nil
}

// A refusal names the rules in their order, also one that a block of a rule without a limit adds.
func TestOrderOfRefusalsWithoutALimit(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		first, second := computed("first"), computed("second")
		first.Algorithm, second.Algorithm = s.window, s.window
		if err := s.limiter.Block(t.Context(), time.Hour, ratelimit.Request{Rule: first, Key: "acme"}); err != nil {
			t.Fatal(err)
		}
		rules := wrap.NewRules("p.T.M", first, second)
		err := wrap.TakeCharges(t.Context(), rules.On(s.limiter), rules, wrap.Charge{Key: "acme", Cost: 1, Limit: ratelimit.NoLimit}, wrap.Charge{Key: "acme", Cost: 1})
		refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
		if !ok || len(refusal.Violations) != 2 || refusal.Violations[0].Rule != "first" || refusal.Violations[1].Rule != "second" {
			t.Errorf("got %v", err)
		}
	})
}

// A call that brings NoLimit and may wait holds until a pause ends, and is charged nothing then.
func TestCallWithoutALimitHoldsInAPause(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for _, pausable := range []bool{true, false} {
			rule := computed(fmt.Sprint("plan", pausable))
			rule.Wait, rule.Pausable = time.Minute, pausable
			q := ratelimit.Request{Rule: rule, Key: "acme"}
			if err := s.limiter.Pause(t.Context(), 30*time.Second, q); err != nil {
				t.Fatal(err)
			}
			ctx, report := ratelimit.WithReport(t.Context())
			gone := make(chan error, 1)
			go func() { gone <- s.take(ctx, rule, "acme", ratelimit.NoLimit, 1) }()
			select {
			case err := <-gone:
				t.Fatalf("the call does not hold: %v", err)
			case <-time.After(50 * time.Millisecond):
			}
			if err := s.limiter.Resume(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			if err := <-gone; err != nil {
				t.Error(err)
			}
			if quotas := s.peek(t, q).Quotas; quotas[0].Remaining != 0 || len(report.Quotas()) != 0 {
				t.Errorf("the call was charged: %+v, and reports %+v", quotas, report.Quotas())
			}
		}
	})
}

// An override's Limit replaces NoLimit, also for one key. A Factor leaves it.
func TestOverridesOfNoLimit(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rule := computed("plan")
		rule.Algorithm = s.window
		for _, test := range []struct {
			v       ratelimit.Override
			refuses bool
		}{{ratelimit.Override{Factor: 0.5}, false}, {ratelimit.Override{Limit: new(int64(0))}, true}, {ratelimit.Override{Key: "acme", Limit: new(int64(0))}, true}} {
			override(t, s.limiter, "plan", test.v)
			if err := s.take(context.Background(), rule, "acme", ratelimit.NoLimit, 1); errors.Is(err, ratelimit.ErrTooManyRequests) != test.refuses || err != nil && !test.refuses {
				t.Errorf("%+v: got %v", test.v, err)
			}
			s.limiter.Overrides().ClearLocal("plan", test.v.Key)
		}
	})
}
