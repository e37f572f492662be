package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// unasked is a store that must not be asked for decisions.
type unasked struct {
	ratelimit.Store
	t *testing.T
}

func (u unasked) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	if !call.Peek {
		u.t.Error("a call at a cost of 0 asks the store")
	}
	return u.Store.Decide(ctx, call)
}

// A call that begins at a cost of 0 asks the store nothing, and is charged what a settlement says, by each of the ways to settle. A refund gives
// that back. A rule that does not apply is not charged.
func TestSettlementOfACallWithoutACost(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		limiter := ratelimit.New(unasked{s.store, t})
		for _, rule := range s.known([]ratelimit.Rule{
			{Name: "sliding", Limit: 100, Per: 3000 * time.Hour},
			{Name: "amounts", Limit: 100_000, Per: 3000 * time.Hour},
			{Name: "fixed", Limit: 100, Per: 3000 * time.Hour, Algorithm: ratelimit.FixedWindow},
			{Name: "calendar", Limit: 100, Cron: "0 0 1 1 *"},
			{Name: "bucket", Limit: 100, Per: 3000 * time.Hour, Algorithm: ratelimit.TokenBucket},
			{Name: "counter", Limit: 100, Per: 3000 * time.Hour, Algorithm: ratelimit.SlidingCounter},
			{Name: "shadow", Limit: 100, Per: 3000 * time.Hour, Mode: ratelimit.ModeShadow},
			{Name: "here", Limit: 100, Per: 3000 * time.Hour, Scope: ratelimit.ScopeInstance},
		}...) {
			other := ratelimit.Rule{Name: "other", Limit: 100, Per: 3000 * time.Hour, Algorithm: s.window}
			rules := wrap.NewRules("p.T."+rule.Name, rule, other).WithCost(rule.Name, "other")
			begin := func(ctx context.Context, key string) *wrap.Taken {
				taken, err := wrap.Begin(ctx, rules.On(limiter), rules, wrap.Charge{Key: key}, wrap.Charge{Key: key, Cost: 7, Skip: true})
				if err != nil || !taken.Applies(0) || taken.Applies(1) {
					t.Fatalf("%s: error %v; the rules do not apply as they should", rule.Name, err)
				}
				return taken
			}
			used := func(key string) (used [2]int64) {
				for i, r := range rules.Rules() {
					r.Mode = ratelimit.ModeEnforce
					used[i] = r.Limit - (&subject{limiter: limiter}).left(t, ratelimit.Request{Rule: r, Key: key})
				}
				return used
			}
			begin(t.Context(), "settle").Settle(t.Context(), 50, 50)
			ctx, charge := ratelimit.WithCharge(t.Context())
			begin(ctx, "charge")
			err := charge.Settle(t.Context(), 50)
			if again := charge.Settle(t.Context(), 70); err != nil || again != nil {
				t.Errorf("%s: Settle fails: %v, %v", rule.Name, err, again)
			}
			back := begin(t.Context(), "zero")
			back.Settle(t.Context(), 0, wrap.Keep)
			back.Settle(t.Context(), 60, wrap.Keep)
			begin(t.Context(), "kept").Settle(t.Context(), wrap.Keep, wrap.Keep)
			for key, want := range map[string]int64{"settle": 50, "charge": 50, "zero": 0, "kept": 0} {
				if got := used(key); got != [2]int64{want, 0} {
					t.Errorf("%s, %s: %d permits are charged, want %d", rule.Name, key, got, want)
				}
			}
		}
	})
}

// Rules of one count are settled together, also if some of them began at a cost of 0, in whatever order they are.
func TestSettlementOfOneCountWithAndWithoutACost(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := ratelimit.Rule{Name: "tokens", Limit: 1000, Per: 3000 * time.Hour}
		for key, charges := range map[string][3]int64{"first": {0, 5, 0}, "last": {5, 0, 0}, "none": {0, 0, 0}, "all": {1, 2, 3}} {
			all := make([]wrap.Charge, len(charges))
			for i, cost := range charges {
				all[i] = wrap.Charge{Key: key, Cost: cost}
			}
			rules := wrap.NewRules("p.T.M", rule, rule, rule)
			taken, err := wrap.Begin(t.Context(), rules.On(s.limiter), rules, all...)
			if err != nil {
				t.Fatal(err)
			}
			taken.Settle(t.Context(), 10, 20, wrap.Keep)
			if got, want := s.used(t, rule, key), 30+charges[2]; got != want {
				t.Errorf("%s: %d permits are charged, want %d", key, got, want)
			}
		}
	})
}

// What refund=error gives back is what a settlement took.
func TestRefundOfACallWithoutACost(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := ratelimit.Rule{Name: "tokens", Limit: 1000, Per: 3000 * time.Hour, Refund: ratelimit.RefundError}
		rules := wrap.NewRules("p.T.M", rule)
		taken, err := wrap.Begin(t.Context(), rules.On(s.limiter), rules, wrap.Charge{Key: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		taken.Settle(t.Context(), 50)
		before, failed := s.used(t, rule, "ann"), false
		taken.RefundUnless(t.Context(), &failed)
		if after := s.used(t, rule, "ann"); before != 50 || after != 0 {
			t.Errorf("%d permits are charged, and %d after the refund; want 50 and 0", before, after)
		}
	})
}

// No settlement comes after the refund of a call that was charged nothing.
func TestSettlementAfterTheRefundOfNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := ratelimit.Rule{Name: "tokens", Limit: 1000, Per: 3000 * time.Hour, Refund: ratelimit.RefundError}
		rules := wrap.NewRules("p.T.M", rule)
		taken, err := wrap.Begin(t.Context(), rules.On(s.limiter), rules, wrap.Charge{Key: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		failed := false
		taken.RefundUnless(t.Context(), &failed)
		taken.Settle(t.Context(), 50)
		if used := s.used(t, rule, "ann"); used != 0 {
			t.Errorf("%d permits are charged after the refund", used)
		}
	})
}

// A rule refuses no call that costs nothing: not by a block, a pause, an override, a limit of 0, or a key that it cannot count. A settlement is
// taken all the same if the key can be counted.
func TestNothingRefusesACallWithoutACost(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := ratelimit.Rule{Name: "tokens", Key: "{user}", Limit: 1000, Per: 3000 * time.Hour}
		zero := int64(0)
		for name, test := range map[string]struct {
			key     string
			prepare func(q ratelimit.Request) error
			used    int64
		}{
			"blocked": {"b", func(q ratelimit.Request) error { return s.limiter.Block(t.Context(), time.Hour, q) }, 50},
			"paused":  {"p", func(q ratelimit.Request) error { return s.limiter.Pause(t.Context(), time.Hour, q) }, 50},
			"limit 0": {"o", func(q ratelimit.Request) error {
				return s.limiter.Overrides().Set(t.Context(), "tokens", ratelimit.Override{Key: q.Key, Limit: &zero})
			}, 1},
			"empty": {"", func(ratelimit.Request) error { return nil }, 0},
		} {
			q := ratelimit.Request{Rule: rule, Key: test.key}
			if err := test.prepare(q); err != nil {
				t.Fatal(err)
			}
			ctx, charge := ratelimit.WithCharge(t.Context())
			rules := wrap.NewRules("p.T.M", rule).WithCost("tokens")
			taken, err := wrap.Begin(ctx, rules.On(s.limiter), rules, wrap.Charge{Key: test.key})
			if err != nil || taken.Applies(0) != (test.key != "") {
				t.Errorf("%s: error %v, applies %t", name, err, err == nil && taken.Applies(0))
				continue
			}
			if err := charge.Settle(t.Context(), 50); err != nil {
				t.Errorf("%s: Settle fails: %v", name, err)
			}
			_ = errors.Join(s.limiter.Unblock(t.Context(), q), s.limiter.Resume(t.Context(), q), s.limiter.Overrides().Clear(t.Context(), "tokens", test.key))
			if test.key != "" {
				if used := s.used(t, rule, test.key); used != test.used {
					t.Errorf("%s: %d permits are charged, want %d", name, used, test.used)
				}
			}
		}
	})
}

// A settlement of a call at a cost of 0 counts as the limit of the call says. Without a limit nothing is settled.
func TestSettlementUnderTheLimitOfACallWithoutACost(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rules := wrap.NewRules("p.T.M", computed("plan"))
		for limit, want := range map[int64]int64{100: 50, 20_000: 50, ratelimit.NoLimit: 0} {
			key := fmt.Sprint("team", limit)
			taken, err := wrap.Begin(t.Context(), rules.On(s.limiter), rules, wrap.Charge{Key: key, Limit: limit})
			if err != nil || taken.Applies(0) != (want > 0) {
				t.Fatal(limit, err)
			}
			taken.Settle(t.Context(), 50)
			declared := ratelimit.Rule{Name: "plan", Key: "{team}", Limit: max(limit, 1), Per: 3000 * time.Hour}
			if left := s.left(t, ratelimit.Request{Rule: declared, Key: key}); max(limit, 1)-left != want {
				t.Errorf("a limit of %d: %d are left, want %d charged", limit, left, want)
			}
		}
	})
}

// A settlement that opens a window takes its permits from that window: a refund gives them back to it.
func TestRefundOfASettlementThatOpensAWindow(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rule := window("r", 60, ratelimit.FixedWindow)
		method := wrap.NewRules("p.T.M", rule).WithCost()
		for n := range 50 {
			q := ratelimit.Request{Rule: rule, Key: fmt.Sprint(n)}
			ctx, charge := ratelimit.WithCharge(t.Context())
			taken, err := wrap.Begin(ctx, method.On(s.limiter), method, wrap.Charge{Key: q.Key, Cost: 0})
			if err != nil {
				t.Fatal(err)
			}
			if err := charge.Settle(ctx, 51); err != nil || s.left(t, q) != 9 {
				t.Fatalf("settled: %d are left, error %v", s.left(t, q), err)
			}
			if err := taken.Refund(ctx); err != nil || s.left(t, q) != 60 {
				t.Fatalf("refunded: %d are left, error %v", s.left(t, q), err)
			}
		}
	})
}
