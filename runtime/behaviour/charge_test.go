package behaviour_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// streamed are the rules of a method: two with cost=, and one without.
var streamed = []ratelimit.Rule{
	{Name: "input", Limit: 100_000, Per: long},
	{Name: "output", Limit: 10_000, Per: long, Algorithm: ratelimit.TokenBucket},
	{Name: "calls", Limit: 10_000, Per: long, Algorithm: ratelimit.FixedWindow},
}

// streamed returns these rules, with windows that the store knows.
func (s *subject) streamed() []ratelimit.Rule {
	rules := slices.Clone(streamed)
	for i := range rules {
		if !s.knows(rules[i]) {
			rules[i].Algorithm = s.window
		}
	}
	return rules
}

func beginStream(t *testing.T, ctx context.Context, s *subject, key string) *wrap.Taken {
	t.Helper()
	rules := wrap.NewRules("p.T.Stream", s.streamed()...).WithCost("input", "output")
	taken, err := wrap.Begin(ctx, rules.On(s.limiter), rules,
		wrap.Charge{Key: key, Cost: 50}, wrap.Charge{Key: key, Cost: 50}, wrap.Charge{Key: key, Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

func (s *subject) requireUsed(t *testing.T, r *rapid.T, key string, want []int64) {
	t.Helper()
	for i, rule := range s.streamed() {
		q := ratelimit.Request{Rule: rule, Key: key}
		if used := rule.Limit - s.left(t, q); used != want[i] {
			r.Fatalf("%s: %d permits are charged, want %d", rule.Name, used, want[i])
		}
	}
}

// The first settlement of a rule holds, by whatever way it is made. A refund gives back what is charged then, and ends all.
func TestFirstSettlementHolds(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		n := 0
		rapid.Check(t, func(r *rapid.T) {
			n++
			key := time.Duration(n).String()
			ctx, charge := ratelimit.WithCharge(context.Background())
			ctx, cancel := context.WithCancel(ctx)
			taken := beginStream(t, ctx, s, key)
			if rapid.Bool().Draw(r, "ended") {
				cancel()
			}
			defer cancel()
			want, isSettled := []int64{50, 50, 1}, []bool{false, false, false}
			settled := func(i int, cost int64) {
				if !isSettled[i] {
					want[i], isSettled[i] = cost, true
				}
			}
			for range rapid.IntRange(0, 5).Draw(r, "steps") {
				cost := rapid.Int64Range(0, 300).Draw(r, "cost")
				var err error
				switch rapid.IntRange(0, 4).Draw(r, "step") {
				case 0:
					err = charge.Settle(ctx, cost)
					settled(0, cost)
					settled(1, cost)
				case 1:
					err = ratelimit.ChargeFrom(ctx).Settle(ctx, cost, "output")
					settled(1, cost)
				case 2:
					taken.Settle(ctx, cost, wrap.Keep, cost)
					settled(0, cost)
					settled(2, cost)
				case 3:
					s.pass(time.Millisecond)
				case 4:
					var one sync.WaitGroup
					for range 2 {
						one.Go(func() {
							if err := charge.Settle(ctx, cost, "input"); err != nil {
								t.Error(err)
							}
						})
					}
					one.Wait()
					settled(0, cost)
				}
				if err != nil {
					r.Fatal(err)
				}
				s.requireUsed(t, r, key, want)
			}
		})
	})
}

// A refund after a settlement gives back all that is charged then, also what the settlement took later than the call.
func TestRefundAfterASettlement(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		rule.Limit, rule.Burst = 9, 0
		other, q := s.admit(t, ratelimit.Request{Rule: rule, Key: "k"}), ratelimit.Request{Rule: rule, Key: "k"}
		for _, cost := range []int64{0, 1, 2, 5} {
			before := s.left(t, q)
			d := s.admit(t, q)
			s.pass(time.Millisecond)
			if err := d.Settle(t.Context(), cost); err != nil {
				t.Fatal(err)
			}
			if left := s.left(t, q); left != before-cost {
				t.Errorf("%s: settled to %d: %d permits left, want %d", rule.Name, cost, left, before-cost)
			}
			for range 2 {
				if err := d.Refund(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if left := s.left(t, q); left != before {
				t.Errorf("%s: settled to %d, then refunded: %d permits left, want %d", rule.Name, cost, left, before)
			}
		}
		if err := other.Refund(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// A Charge is that of the outermost wrapper's first admitted call. Until then, and for other rules, Settle is a RuleError.
func TestChargeOfTheOutermostCall(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		if ratelimit.ChargeFrom(t.Context()) != nil {
			t.Error("there is a charge without WithCharge")
		}
		ctx, charge := ratelimit.WithCharge(t.Context())
		isWrong := func(err error, rule string) {
			t.Helper()
			if wrong, ok := errors.AsType[*ratelimit.RuleError](err); !ok || wrong.Rule != rule || wrong.Argument != "settle" {
				t.Errorf("got error %v, want a *RuleError of %q", err, rule)
			}
		}
		isWrong(charge.Settle(ctx, 1), "")
		isWrong(ratelimit.ChargeFrom(t.Context()).Settle(ctx, 1), "")
		none := wrap.NewRules("p.T.Closed", window("closed", 0, s.window)).WithCost("closed")
		if err := wrap.Take(ctx, none.On(s.limiter), none, "k"); !errors.Is(err, ratelimit.ErrTooManyRequests) {
			t.Fatalf("got error %v", err)
		}
		isWrong(charge.Settle(ctx, 1), "")

		outer := window("outer", 100, s.window)
		method := wrap.NewRules("p.T.Outer", outer).WithCost("outer")
		if err := wrap.TakeCharges(ctx, method.On(s.limiter), method, wrap.Charge{Key: "k", Cost: 5}); err != nil {
			t.Fatal(err)
		}
		beginStream(t, ctx, s, "inner")
		isWrong(charge.Settle(ctx, 1, "input"), "input")
		isWrong(charge.Settle(ctx, -1), "p.T.Outer")
		if err := charge.Settle(ctx, 30, "outer"); err != nil {
			t.Fatal(err)
		}
		if left := s.left(t, ratelimit.Request{Rule: outer, Key: "k"}); left != 70 {
			t.Errorf("%d permits left, want 70", left)
		}
		if left := s.left(t, ratelimit.Request{Rule: s.streamed()[0], Key: "inner"}); left != streamed[0].Limit-50 {
			t.Errorf("the inner call was settled: %d permits left", left)
		}

		ctx, charge = ratelimit.WithCharge(t.Context())
		beginStream(t, ctx, s, "other")
		isWrong(charge.Settle(ctx, 1, "calls"), "calls")
		isWrong(charge.Settle(ctx, 1, "input", "inputs"), "inputs")

		plain := wrap.NewRules("p.T.Plain", window("plain", 5, s.window))
		ctx, charge = ratelimit.WithCharge(t.Context())
		if err := wrap.Take(ctx, plain.On(s.limiter), plain, "k"); err != nil {
			t.Fatal(err)
		}
		isWrong(charge.Settle(ctx, 1), "p.T.Plain")

		unnamed := window("", 5, s.window)
		ctx, charge = ratelimit.WithCharge(t.Context())
		twice := wrap.NewRules("p.T.Unnamed", unnamed, unnamed).WithCost("p.T.Unnamed#2")
		if err := wrap.Take(ctx, twice.On(s.limiter), twice, "k", "l"); err != nil {
			t.Fatal(err)
		}
		isWrong(charge.Settle(ctx, 1, "p.T.Unnamed"), "p.T.Unnamed")
		if err := charge.Settle(ctx, 1, "p.T.Unnamed#2"); err != nil {
			t.Error(err)
		}
	})
}
