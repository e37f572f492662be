package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// yearly fires on the first day of the month half a year from now: not while the tests run.
var yearly = fmt.Sprintf("0 0 0 1 %d *", (time.Now().UTC().Month()+5)%12+1)

// algorithms returns one rule of each kind with three permits. Once it is exhausted, it refuses for the rest of a test.
func algorithms() map[string]ratelimit.Rule {
	return map[string]ratelimit.Rule{
		"sliding-window": {Name: "r", Limit: 3, Per: time.Hour},
		"fixed-window":   {Name: "r", Limit: 3, Per: time.Hour, Algorithm: ratelimit.FixedWindow},
		"token-bucket":   {Name: "r", Limit: 3, Per: time.Hour, Algorithm: ratelimit.TokenBucket},
		"calendar":       {Name: "r", Limit: 3, Cron: yearly, TZ: "UTC"},
	}
}

// algorithms returns the rules that the store can decide, with the names of their kinds.
func (s *subject) algorithms() map[string]ratelimit.Rule {
	known := map[string]ratelimit.Rule{}
	for name, rule := range algorithms() {
		if rule.Name = name; s.knows(rule) {
			known[name] = rule
		}
	}
	return known
}

// onEveryAlgorithm runs a scenario once for each store and each kind of rule that the store knows.
func onEveryAlgorithm(t *testing.T, scenario func(*testing.T, *subject, ratelimit.Rule)) {
	onPlainToo(t, func(t *testing.T, s *subject) { s.onItsAlgorithms(t, scenario) })
}

// onEveryAlgorithmThatWaits does so for each store whose calls wait.
func onEveryAlgorithmThatWaits(t *testing.T, scenario func(*testing.T, *subject, ratelimit.Rule)) {
	onEveryStore(t, func(t *testing.T, s *subject) { s.onItsAlgorithms(t, scenario) })
}

// onItsAlgorithms runs a scenario once for each kind of rule that the store knows.
func (s *subject) onItsAlgorithms(t *testing.T, scenario func(*testing.T, *subject, ratelimit.Rule)) {
	for name, rule := range s.algorithms() {
		t.Run(name, func(t *testing.T) { scenario(t, s, rule) })
	}
}

func TestLimitIsReachedAndKept(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		q := ratelimit.Request{Rule: rule, Key: "k"}
		for range 3 {
			s.admit(t, q)
		}
		d := s.refuse(t, q)
		if len(d.Violations) != 1 {
			t.Fatalf("violations: %+v", d.Violations)
		}
		v := d.Violations[0]
		if v.Rule != rule.Name || v.Key != "k" || v.Limit != 3 || v.Remaining != 0 || v.RetryAfter != d.RetryAfter || v.RetryAfter <= 0 {
			t.Errorf("violation: %+v of a decision with RetryAfter %v", v, d.RetryAfter)
		}
		s.admit(t, ratelimit.Request{Rule: rule, Key: "another"})
	})
}

func TestCost(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		s.admit(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 2})
		d := s.refuse(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 2})
		if d.Violations[0].Remaining != 1 {
			t.Errorf("remaining: got %d, want 1", d.Violations[0].Remaining)
		}
		s.admit(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 1})
	})
}

func TestPeekChargesNothing(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		q := ratelimit.Request{Rule: rule, Key: "k", Cost: 3}
		for range 5 {
			if d := s.peek(t, q); !d.Allowed || len(d.Violations) > 0 || d.RetryAfter != 0 {
				t.Fatalf("peek before the call: %+v", d)
			}
		}
		s.admit(t, q)
		if d := s.peek(t, q); d.Allowed || len(d.Violations) != 1 || d.RetryAfter <= 0 {
			t.Errorf("peek after the call: %+v", d)
		}
	})
}

func TestReset(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		q, other := ratelimit.Request{Rule: rule, Key: "k", Cost: 3}, ratelimit.Request{Rule: rule, Key: "other", Cost: 3}
		s.admit(t, q, other)
		for _, want := range []int{1, 0} {
			if n, err := s.limiter.Reset(context.Background(), q, q); n != want || err != nil { // equal requests have one count
				t.Fatalf("forgot %d, want %d; error %v", n, want, err)
			}
		}
		s.refuse(t, other)
		s.admit(t, q)
		s.refuse(t, q)
	})
}

// A reset forgets only the counts of the rules that it names.
func TestResetOfOneRuleAmongSeveral(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		minute := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Minute, Algorithm: s.window}, Key: "k"}
		day := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: 24 * time.Hour, Algorithm: s.window}, Key: "k"}
		s.admit(t, minute, day)
		if _, err := s.limiter.Reset(context.Background(), minute); err != nil {
			t.Fatal(err)
		}
		s.admit(t, minute)
		s.refuse(t, day)
	})
}

func TestLimitZeroRefusesEverything(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		rule.Limit = 0
		for _, cost := range []int64{0, 1, 5} {
			d, err := s.limiter.Allow(context.Background(), ratelimit.Request{Rule: rule, Key: "k", Cost: cost})
			if err != nil || d.Allowed || !d.Never || d.RetryAfter != 0 || len(d.Violations) != 1 || !d.Violations[0].Never {
				t.Errorf("got %+v, error %v", d, err)
			}
		}
	})
}

func TestOneRefusalTakesNothingAnywhere(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		var all []ratelimit.Request
		for _, rule := range s.algorithms() {
			all = append(all, ratelimit.Request{Rule: rule, Key: "k"})
		}
		narrow := ratelimit.Request{Rule: window("narrow", 1, s.window), Key: "k"}
		elsewhere := ratelimit.Request{Rule: window("elsewhere", 1, s.window), Key: "another subject"}
		s.admit(t, narrow)
		s.admit(t, elsewhere)
		for range 5 {
			s.refuse(t, append([]ratelimit.Request{narrow}, all...)...)
			s.refuse(t, append(all[:len(all):len(all)], narrow)...)
			s.refuse(t, append(all[:len(all):len(all)], elsewhere)...)
		}
		for _, q := range all {
			if left := s.left(t, q); left != 3 {
				t.Errorf("%s: %d of 3 permits left after refusals", q.Rule.Name, left)
			}
		}
	})
}

func TestAllRefusingRulesAreReportedInOrder(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		request := func(name string, limit int64, per time.Duration) ratelimit.Request {
			return ratelimit.Request{Rule: ratelimit.Rule{Name: name, Limit: limit, Per: per, Algorithm: s.window}, Key: "k"}
		}
		a, open, b, c := request("a", 1, time.Hour), request("open", 9, time.Hour), request("b", 1, 2*time.Hour), request("c", 1, time.Minute)
		s.admit(t, a, open, b, c)
		d := s.refuse(t, c, b, open, a)
		var names []string
		var longest time.Duration
		for _, v := range d.Violations {
			names = append(names, v.Rule)
			longest = max(longest, v.RetryAfter)
		}
		if len(names) != 3 || names[0] != "c" || names[1] != "b" || names[2] != "a" {
			t.Errorf("violations: got %v, want [c b a]", names)
		}
		if d.RetryAfter != longest || d.RetryAfter != d.Violations[1].RetryAfter {
			t.Errorf("RetryAfter is %v; the longest of %+v is meant", d.RetryAfter, d.Violations)
		}
	})
}

func TestSixtyFourCallersNeverExceedTheLimit(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		const callers, calls, limit = 64, 8, 100
		rule.Limit, rule.Per = limit, rule.Per*1000 // so that a bucket does not refill meanwhile
		q := ratelimit.Request{Rule: rule, Key: "k"}
		if admitted := race(t, callers, calls, s.limiter, q); admitted != limit {
			t.Errorf("%d calls were admitted, limit %d", admitted, limit)
		}
	})
}

// race makes calls from several goroutines at the same time and returns how many were admitted.
func race(t *testing.T, callers, calls int, l *ratelimit.Limiter, q ratelimit.Request) int64 {
	t.Helper()
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				d, err := l.Allow(context.Background(), q)
				if err != nil {
					t.Errorf("Allow: %v", err)
					return
				}
				if d.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	return admitted.Load()
}

// Two programs with different limits for one rule share its count: each counts the permits that the other has taken.
func TestProgramsWithDifferentLimits(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rules := s.algorithms()
		delete(rules, "token-bucket") // see TestBucketOfAnotherLimit
		for _, rule := range rules {
			newer := &subject{limiter: s.another()}
			limit := func(n int64) ratelimit.Request {
				rule.Limit = n
				return ratelimit.Request{Rule: rule, Key: "k"}
			}
			for range 2 {
				s.admit(t, limit(3))
				newer.admit(t, limit(5))
			}
			s.refuse(t, limit(3))
			newer.admit(t, limit(5))
			newer.refuse(t, limit(5))
			s.refuse(t, limit(3))
			newer.admit(t, limit(7)) // calls with the lower limit have not dropped permits
			newer.admit(t, limit(7))
			newer.refuse(t, limit(7))
		}
	})
}

// If the limit of a bucket changes, the number of missing permits stays the same, whatever its burst.
func TestBucketOfAnotherLimit(t *testing.T) {
	tests := []struct{ limit, cost, then int64 }{
		{4, 4, 2}, {2, 2, 4}, {4, 1, 2}, {4, 3, 1}, {2, 1, 4}, {1, 1, 1000}, {1000, 1000, 1}, {1000, 900, 1}, {1000, 900, 900},
	}
	onEveryStore(t, func(t *testing.T, s *subject) {
		for _, test := range tests {
			rule := ratelimit.Rule{Name: "r", Limit: test.limit, Per: time.Hour, Algorithm: ratelimit.TokenBucket}
			q := ratelimit.Request{Rule: rule, Key: fmt.Sprint(test), Cost: test.cost}
			first := s.admit(t, q)
			q.Rule.Limit, q.Cost = test.then, test.then
			d := s.refuse(t, q)
			gained := d.At.Sub(first.At) * time.Duration(min(test.limit, test.then)) // until the second call, at the lower of the two rates
			if want := (time.Hour*time.Duration(test.cost) - gained) / time.Duration(test.then); (d.RetryAfter - want).Abs() > time.Microsecond {
				t.Errorf("%d of %d, then limit %d: full again in %v, want %v", test.cost, test.limit, test.then, d.RetryAfter, want)
			}
		}
	})
}

// A call with the largest number of rules is decided like any other. One more rule is an error.
func TestMostRulesOfACall(t *testing.T) {
	const most = 255
	var rules []ratelimit.Rule
	for i := range most + 1 {
		rules = append(rules, window(fmt.Sprint("r", i), 1, ratelimit.FixedWindow))
	}
	onPlainToo(t, func(t *testing.T, s *subject) {
		var requests []ratelimit.Request
		for _, rule := range rules {
			rule.Algorithm = s.window
			requests = append(requests, ratelimit.Request{Rule: rule})
		}
		s.admit(t, requests[:most]...)
		if d := s.refuse(t, requests[:most]...); len(d.Violations) != most {
			t.Errorf("%d rules refused, want %d", len(d.Violations), most)
		}
		_, err := s.limiter.Allow(context.Background(), requests...)
		if _, ok := errors.AsType[*ratelimit.RuleError](err); !ok {
			t.Errorf("%d requests: got error %v, want a *RuleError", most+1, err)
		}
	})
	defer func() {
		if _, ok := recover().(*ratelimit.RuleError); !ok {
			t.Errorf("a method may have %d rules", most+1)
		}
	}()
	wrap.NewRules("m", rules...)
}

// Generated code gets a refusal as an error.
func TestRefusalOfTake(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		rule.Message = "Three are enough."
		rules, ctx := wrap.NewRules("sms.Sender.SendCode", rule), context.Background()
		for range 3 {
			if err := wrap.Take(ctx, rules.On(s.limiter), rules, "k"); err != nil {
				t.Fatal(err)
			}
		}
		err := wrap.Take(ctx, rules.On(s.limiter), rules, "k")
		e, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
		if !ok || !errors.Is(err, ratelimit.ErrTooManyRequests) {
			t.Fatalf("got error %v (%T), want a *TooManyRequestsError", err, err)
		}
		if e.Method != "sms.Sender.SendCode" || e.Message != rule.Message || e.RetryAfter <= 0 || len(e.Violations) != 1 {
			t.Errorf("got %+v", e)
		}
	})
}

func TestCancelledContextIsNoRefusal(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		q := ratelimit.Request{Rule: rule, Key: "k", Cost: 3}
		for name, call := range map[string]func() error{
			"Allow": func() error { _, err := s.limiter.Allow(ctx, q); return err },
			"Peek":  func() error { _, err := s.limiter.Peek(ctx, q); return err },
			"Reset": func() error { _, err := s.limiter.Reset(ctx, q); return err },

			"Block":   func() error { return s.limiter.Block(ctx, time.Hour, q) },
			"Blocked": func() error { _, err := s.limiter.Blocked(ctx); return err },
			"Rules":   func() error { _, err := s.limiter.Rules(ctx); return err },
			"List":    func() error { _, err := s.limiter.Overrides().List(ctx); return err },
		} {
			if err := call(); !errors.Is(err, context.Canceled) || errors.Is(err, ratelimit.ErrTooManyRequests) {
				t.Errorf("%s: got error %v, want one that is context.Canceled", name, err)
			}
		}
		s.admit(t, q)
	})
}

// A window forgets no permits of other calls: neither when a settlement counts by a lower limit than theirs, nor when it takes permits beyond the
// limit. So what a refund of the settled call gives back is its own.
func TestSettlementsForgetNoOthers(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, limit := range []int64{100, 10_000, 20_000, 100_000_000} {
			name, part := fmt.Sprint("r", limit), limit/100
			q := ratelimit.Request{Rule: window(name, limit, s.window), Key: "k"}
			charge := func(cost int64) ratelimit.Decision {
				q.Cost = cost
				return s.admit(t, q)
			}
			want := func(left int64, when string) {
				d, err := s.limiter.Peek(context.Background(), q)
				if err != nil || d.Quotas[0].Remaining != left {
					t.Errorf("of %d, %s: got %+v, %v; want %d left", limit, when, d.Quotas, err, left)
				}
			}
			charge(40 * part)
			settled := charge(part)
			charge(5 * part)
			if err := s.limiter.Overrides().SetLocal(name, ratelimit.Override{Limit: new(10 * part)}); err != nil {
				t.Fatal(err)
			}
			if err := settled.Settle(context.Background(), 2*part); err != nil {
				t.Error(err)
			}
			s.limiter.Overrides().ClearLocal(name, "")
			want(53*part, "after a settlement under a lower limit")
			beyond := charge(10 * part)
			if err := beyond.Settle(context.Background(), 80*part); err != nil {
				t.Error(err)
			}
			want(0, "after a settlement beyond the limit")
			if err := beyond.Refund(context.Background()); err != nil {
				t.Error(err)
			}
			want(53*part, "after its refund")
		}
	})
}

// A window takes costs, triggers, settlements and amounts of any size up to its limit.
func TestLargeCosts(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, limit := range []int64{10_000, 10_001, 1_000_000, 1_000_000_000} {
			q := ratelimit.Request{Rule: window(fmt.Sprint("r", limit), limit, s.window), Key: "k", Cost: limit - 2}
			d := s.admit(t, q)
			left := func() int64 {
				d, err := s.limiter.Peek(context.Background(), q)
				if err != nil {
					t.Fatal(err)
				}
				return d.Quotas[0].Remaining
			}
			if n := left(); n != 2 {
				t.Errorf("of %d: after all but two %d are left", limit, n)
			}
			if err := d.Settle(context.Background(), 1<<60); err != nil || left() != 0 {
				t.Errorf("of %d: after a settlement beyond the limit %d are left, error %v", limit, left(), err)
			}
			if _, err := s.limiter.Reset(context.Background(), q); err != nil || left() != limit {
				t.Errorf("of %d: after a reset %d are left, error %v", limit, left(), err)
			}
			upTo, trigger := q, q
			upTo.UpTo, upTo.Cost = true, 2*limit
			if d := s.admit(t, upTo); d.Taken != limit {
				t.Errorf("of %d: %d are taken", limit, d.Taken)
			}
			trigger.Rule.Mode, trigger.Cost = ratelimit.ModeTrigger, 2*limit
			s.admit(t, trigger)
			q.Cost = limit + 1
			_, err := s.limiter.Allow(context.Background(), q)
			if _, never := errors.AsType[*ratelimit.NeverAdmissibleError](err); !never {
				t.Errorf("a cost above the limit of %d: error %v", limit, err)
			}
		}
	})
}
