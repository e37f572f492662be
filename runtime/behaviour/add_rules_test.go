package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// tokens is a rule of which no permit comes back by itself during a test.
func (s *subject) tokens(limit int64) ratelimit.Rule {
	return ratelimit.Rule{Name: "tokens", Limit: limit, Per: long, Algorithm: s.window}
}

// open makes a call of a key that costs the same under all rules, which have cost=.
func (s *subject) open(t *testing.T, cost int64, key string, rules ...ratelimit.Rule) (*ratelimit.Charge, *wrap.Taken) {
	t.Helper()
	method := wrap.NewRules("p.T.Stream", rules...).WithCost()
	ctx, charge := ratelimit.WithCharge(t.Context())
	taken, err := wrap.Begin(ctx, method.On(s.limiter), method, slices.Repeat([]wrap.Charge{{Key: key, Cost: cost}}, len(rules))...)
	if err != nil {
		t.Fatal(err)
	}
	return charge, taken
}

func requireAdded(t *testing.T, charge *ratelimit.Charge, n int64) {
	t.Helper()
	if err := charge.Add(t.Context(), n); err != nil {
		t.Fatalf("%d more: %v", n, err)
	}
}

// refuseMore fails the test unless rules refuse to let a charge grow. It returns the refusal.
func refuseMore(t *testing.T, charge *ratelimit.Charge, n int64, rules ...string) *ratelimit.TooManyRequestsError {
	t.Helper()
	refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](charge.Add(t.Context(), n))
	if !ok || len(refusal.Violations) != len(rules) {
		t.Fatalf("%d more: got %+v, want a refusal by %v", n, refusal, rules)
	}
	for i, v := range refusal.Violations {
		if v.Rule != rules[i] {
			t.Fatalf("%d more: got %+v, want a refusal by %v", n, refusal, rules)
		}
	}
	return refusal
}

func (s *subject) requireTaken(t *testing.T, rule ratelimit.Rule, key string, want int64) {
	t.Helper()
	if used := s.taken(t, rule, key); used != want {
		t.Fatalf("%s: %d permits are taken, want %d", rule.Name, used, want)
	}
}

// taken is used, also for a rule that counts amounts.
func (s *subject) taken(t *testing.T, rule ratelimit.Rule, key string) int64 {
	t.Helper()
	if rule.Limit <= 10_000 {
		return s.used(t, rule, key)
	}
	return rule.Limit - s.peek(t, ratelimit.Request{Rule: rule, Key: key}).Quotas[0].Remaining
}

// observed returns the subject with a limiter that has an observer, and what the observer was told.
func (s *subject) observed(options ...ratelimit.Option) (*subject, *[]ratelimit.Event) {
	events := new([]ratelimit.Event)
	options = append(options, ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		own := *e
		own.Rules = slices.Clone(e.Rules)
		*events = append(*events, own)
	}))
	return s.with(ratelimit.New(s.store, options...)), events
}

// A refusal begins no block, and says what is left. A block that is in force refuses.
func TestBlocksOfAdds(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := s.tokens(10)
		rule.Block = time.Hour
		charge, _ := s.open(t, 4, "k", rule)
		refusal := refuseMore(t, charge, 7, "tokens")
		if v := refusal.Violations[0]; v.Remaining != 6 || v.RetryAfter < time.Hour || v.Limit != 10 {
			t.Errorf("got %+v", v)
		}
		q := ratelimit.Request{Rule: rule, Key: "k"}
		s.admit(t, q)
		q.Cost = 7
		s.refuse(t, q) // begins a block
		if refusal := refuseMore(t, charge, 1, "tokens"); refusal.RetryAfter <= 0 || refusal.RetryAfter > time.Hour {
			t.Errorf("got %+v during a block", refusal)
		}
		s.requireTaken(t, s.tokens(10), "k", 5)
	})
}

// What operators set while a call runs holds for what it adds: limits, windows, modes, blocks and pauses. A refund gives all of it back.
func TestSettingsOfAdds(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		ctx, rule, q := t.Context(), s.tokens(10), ratelimit.Request{Rule: s.tokens(10), Key: "k"}
		charge, taken := s.open(t, 4, "k", rule)
		set := func(o ratelimit.Override) {
			t.Helper()
			if o.Key = "k"; o.Reason == "" {
				o.Reason = "a test"
			}
			if err := s.limiter.Overrides().Set(ctx, "tokens", o); err != nil {
				t.Fatal(err)
			}
		}
		refuseMore(t, charge, 7, "tokens")
		set(ratelimit.Override{Limit: new(int64(20))})
		requireAdded(t, charge, 7)
		set(ratelimit.Override{Limit: new(int64(0))})
		if refusal := refuseMore(t, charge, 1, "tokens"); !refusal.Never {
			t.Errorf("got %+v at a limit of 0", refusal)
		}
		set(ratelimit.Override{Limit: new(int64(20)), Per: 2 * long})
		requireAdded(t, charge, 15) // in the other window nothing is taken
		wider := rule
		wider.Per = 2 * long
		set(ratelimit.Override{Limit: new(int64(10_000))})
		requireAdded(t, charge, 1)
		if err := s.limiter.Overrides().Clear(ctx, "tokens", "k"); err != nil {
			t.Fatal(err)
		}
		refuseMore(t, charge, 1, "tokens")
		for _, by := range []struct {
			begin func(context.Context, time.Duration, ...ratelimit.Request) error
			end   func(context.Context, ...ratelimit.Request) error
		}{{s.limiter.Block, s.limiter.Unblock}, {s.limiter.Pause, s.limiter.Resume}} {
			set(ratelimit.Override{Limit: new(int64(10_000))})
			if err := by.begin(ctx, time.Hour, q); err != nil {
				t.Fatal(err)
			}
			refusal := refuseMore(t, charge, 1, "tokens")
			if refusal.RetryAfter <= 59*time.Minute || refusal.RetryAfter > time.Hour {
				t.Errorf("got %+v", refusal)
			}
			if err := by.end(ctx, q); err != nil {
				t.Fatal(err)
			}
			requireAdded(t, charge, 1)
		}
		set(ratelimit.Override{Mode: new(ratelimit.ModeShadow), Limit: new(int64(1))})
		requireAdded(t, charge, 1)
		if err := s.limiter.Overrides().Clear(ctx, "tokens", "k"); err != nil {
			t.Fatal(err)
		}
		s.requireTaken(t, rule, "k", 14)
		s.requireTaken(t, wider, "k", 15)
		if err := taken.Refund(ctx); err != nil {
			t.Fatal(err)
		}
		s.requireTaken(t, rule, "k", 0)
		s.requireTaken(t, wider, "k", 0)
	})
}

// A rule in shadow mode refuses nothing, and counts what it would have admitted: nothing of a call that it would have refused. A trigger counts all, and
// fires.
func TestModesOfAdds(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		var fired []ratelimit.Trigger
		s, events := s.observed(ratelimit.WithTrigger(func(_ context.Context, f ratelimit.Trigger) { fired = append(fired, f) }))
		rules := []ratelimit.Rule{s.tokens(100), s.tokens(10), s.tokens(10), s.tokens(3)}
		for i, mode := range []ratelimit.Mode{ratelimit.ModeEnforce, ratelimit.ModeShadow, ratelimit.ModeTrigger, ratelimit.ModeShadow} {
			rules[i].Name, rules[i].Mode, rules[i].Algorithm = fmt.Sprint("r", i), mode, ratelimit.FixedWindow
		}
		charge, _ := s.open(t, 4, "k", rules...)
		for i, want := range [][4]int64{{10, 10, 10, 0}, {11, 10, 11, 0}} {
			requireAdded(t, charge, []int64{6, 1}[i])
			for j, rule := range rules {
				s.requireTaken(t, rule, "k", want[j])
			}
		}
		if len(fired) != 1 || fired[0].Used != 10 || fired[0].Key != "k" {
			t.Errorf("fired: %+v", fired)
		}
		last := (*events)[len(*events)-1]
		if last.Kind != ratelimit.EventAdded || last.Err != nil || len(last.Rules) != 3 || !last.Rules[1].Refused || last.Result(&last.Rules[1]) != ratelimit.ResultShadowRefused {
			t.Errorf("told: %+v", last)
		}
		if err := charge.Settle(t.Context(), 12); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int64{12, 12, 12, 0} {
			s.requireTaken(t, rules[i], "k", want)
		}
	})
}

// Observers are told of each Add, with what the rules have charged for the call. Reports have what is left. It is no call.
func TestEventsOfAdds(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		s, events := s.observed()
		ctx, charge := ratelimit.WithCharge(t.Context())
		ctx, report := ratelimit.WithReport(ctx)
		method := wrap.NewRules("p.T.Stream", s.tokens(10), ratelimit.Rule{Name: "calls", Limit: 5, Per: long, Algorithm: s.window}).WithCost("tokens")
		if err := wrap.TakeCharges(ctx, method.On(s.limiter), method, wrap.Charge{Key: "k", Cost: 4}, wrap.Charge{Key: "k", Cost: 1}); err != nil {
			t.Fatal(err)
		}
		if err := charge.Add(ctx, 5); err != nil {
			t.Fatal(err)
		}
		if left := report.Quotas()[0].Remaining; left != 1 {
			t.Errorf("the report has %d left, want 1", left)
		}
		refusal := charge.Add(ctx, 2)
		never := charge.Add(ctx, 11)
		told := (*events)[1:]
		if len(told) != 3 {
			t.Fatalf("told %+v", told)
		}
		for i, e := range told {
			if e.Kind != ratelimit.EventAdded || e.Kind.String() != "added" || e.Method != "p.T.Stream" || len(e.Rules) != 1 || e.Rules[0].Rule != "tokens" {
				t.Errorf("%d: told %+v", i, e)
			}
		}
		if o := told[0].Rules[0]; told[0].Err != nil || o.CostBefore != 4 || o.Cost != 9 || o.Refused || o.Key != "k" || told[0].Result(&o) != ratelimit.ResultAdmitted {
			t.Errorf("told %+v", told[0])
		}
		if o := told[1].Rules[0]; told[1].Err == nil || told[1].Err.Error() != refusal.Error() || o.CostBefore != 9 || o.Cost != 9 || !o.Refused ||
			o.Remaining != 1 || told[1].RetryAfter <= 0 || told[1].Result(&o) != ratelimit.ResultRefused {
			t.Errorf("told %+v", told[1])
		}
		if _, ok := errors.AsType[*ratelimit.NeverAdmissibleError](never); !ok || told[2].Err != never {
			t.Errorf("got %v, told %+v", never, told[2])
		}
	})
}

// A charge that has grown by more than 64 Adds keeps the times of 64 parts. Nothing goes back twice, and the last step goes back as a whole.
func TestManyAdds(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, rule := range s.growing() {
			if rule.Limit = 2000; rule.Name == "amounts" {
				rule.Limit = 20_000
			}
			charge, taken := s.open(t, 10, "k", rule)
			for range 100 {
				requireAdded(t, charge, 10)
				s.pass(time.Microsecond)
			}
			s.requireTaken(t, rule, "k", 1010)
			other, _ := s.open(t, 100, "k", rule)
			requireAdded(t, other, 100)
			if err := charge.Settle(t.Context(), 1003); err != nil {
				t.Fatal(err)
			}
			s.requireTaken(t, rule, "k", 1203)
			if err := taken.Refund(t.Context()); err != nil {
				t.Fatal(err)
			}
			kept := int64(0)
			if rule.Cron == "" && rule.Algorithm == ratelimit.SlidingWindow {
				kept = 360 // of 36 Adds after the 64th, less what the settlement gave back
			}
			if used := s.taken(t, rule, "k"); used < 200 || used > 200+kept {
				t.Errorf("%s: %d permits are taken after the refund, want 200, and at most %d more", rule.Name, used, kept)
			}
		}
	})
}

// backs is a store that counts the steps by which charges change.
type backs struct {
	ratelimit.Store
	n int
}

func (b *backs) Adjust(ctx context.Context, call *engine.Call) error {
	b.n++
	return b.Store.Adjust(ctx, call)
}

// A charge keeps the times of at most 64 Adds. So its memory and the steps of a refund are bounded.
func TestTimesOfAddsAreBounded(t *testing.T) {
	s := inMemory(newClock())
	store := &backs{Store: s.store}
	s.limiter = ratelimit.New(store)
	charge, taken := s.open(t, 1, "k", ratelimit.Rule{Name: "r", Limit: 1000, Per: long})
	for range 300 {
		s.pass(time.Microsecond)
		requireAdded(t, charge, 1)
	}
	if err := taken.Refund(t.Context()); err != nil || store.n != 65 {
		t.Errorf("a refund of a charge and 300 Adds takes %d steps, error %v; want 65", store.n, err)
	}
}

// An observer that an Add tells of a lost store may change the charge.
func TestObserversOfAnAddChangeItsCharge(t *testing.T) {
	clock := limittest.NewClock()
	store := limittest.NewOutage(clock)
	var charge *ratelimit.Charge
	var settled error
	s := &subject{store: store, limiter: ratelimit.New(store, ratelimit.WithFailurePolicy(ratelimit.FailLocal), ratelimit.WithLogger(slog.New(slog.DiscardHandler)),
		ratelimit.WithObserver(func(ctx context.Context, e *ratelimit.Event) {
			if e.Kind == ratelimit.EventStoreLost {
				settled = charge.Settle(ctx, 0)
			}
		}))}
	charge, _ = s.open(t, 1, "k", ratelimit.Rule{Name: "r", Limit: 10, Per: long})
	store.Begin(nil)
	requireAdded(t, charge, 2)
	if _, isStore := errors.AsType[*ratelimit.StoreError](settled); !isStore { // the first permit is in the store
		t.Errorf("settled with error %v", settled)
	}
}

// Adds at one time have one part, so all of them go back, however many they are.
func TestManyAddsAtOneTime(t *testing.T) {
	s := inMemory(newClock())
	for _, rule := range s.growing() {
		if rule.Limit = 500; rule.Name == "amounts" {
			rule.Limit = 20_000
		}
		charge, taken := s.open(t, 1, "k", rule)
		for range 200 {
			requireAdded(t, charge, 2)
		}
		s.requireTaken(t, rule, "k", 401)
		if err := taken.Refund(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.requireTaken(t, rule, "k", 0)
	}
}

// A call adds by the limit that it brought, and its key may be hashed.
func TestAddsOfCallsThatBringLimits(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for _, l := range []*ratelimit.Limiter{s.limiter, ratelimit.New(s.store, ratelimit.WithSubjectHash(make([]byte, 32)))} {
			s := s.with(l)
			rules := wrap.NewRules("p.T.M", computed("plan"), computed("other")).WithCost("plan")
			for limit, most := range map[int64]int64{100: 95, 20_000: 19_995, ratelimit.NoLimit: 1 << 60} {
				ctx, charge := ratelimit.WithCharge(t.Context())
				one := wrap.Charge{Key: fmt.Sprint("{team}", limit), Cost: 5, Limit: limit}
				taken, err := wrap.Begin(ctx, rules.On(s.limiter), rules, one, one)
				if err != nil {
					t.Fatal(err)
				}
				if limit != ratelimit.NoLimit {
					refuseMore(t, charge, most+1, "plan")
				}
				requireAdded(t, charge, most)
				if err := taken.Refund(ctx); err != nil {
					t.Fatal(err)
				}
				if limit != ratelimit.NoLimit {
					again, _ := ratelimit.WithCharge(t.Context())
					one.Cost = limit
					if err := wrap.TakeCharges(again, rules.On(s.limiter), rules, one, one); err != nil {
						t.Errorf("a limit of %d, after a refund: %v", limit, err)
					}
				}
			}
		}
	})
}

// A rule with lease= is asked at the store, whatever the process has taken ahead.
func TestAddsUnderALease(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		s, events := s.observed()
		rule := s.tokens(1000)
		rule.Lease = 5 * time.Second
		var charge *ratelimit.Charge
		for range 20 {
			charge, _ = s.open(t, 1, "k", rule)
		}
		requireAdded(t, charge, 1)
		if told := (*events)[len(*events)-1]; told.Kind != ratelimit.EventAdded || told.Source != ratelimit.SourceStore {
			t.Errorf("told %+v", told)
		}
		if err := charge.Settle(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	})
}

// A call that has ended does not grow: after settlements of all its rules, after a refund, and when its permits of calls that run are back. Nor does one that
// was not admitted, or that has no rule with cost=. What is settled takes part no more.
func TestAddsAfterTheEnd(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		other := s.tokens(50)
		other.Name = "other"
		run := atATime(5)
		for name, end := range map[string]func(*ratelimit.Charge, *wrap.Taken){
			"settled":            func(c *ratelimit.Charge, _ *wrap.Taken) { _ = c.Settle(t.Context(), 3) },
			"settled by settle=": func(_ *ratelimit.Charge, taken *wrap.Taken) { taken.Settle(t.Context(), 3, 3, wrap.Keep) },
			"refunded":           func(_ *ratelimit.Charge, taken *wrap.Taken) { _ = taken.Refund(t.Context()) },
			"released":           func(_ *ratelimit.Charge, taken *wrap.Taken) { taken.Release(t.Context()) },
			"one settled":        func(c *ratelimit.Charge, _ *wrap.Taken) { _ = c.Settle(t.Context(), 3, "other") },
		} {
			method := wrap.NewRules("p.T.M", s.tokens(50), other, run).WithCost()
			ctx, charge := ratelimit.WithCharge(t.Context())
			one := wrap.Charge{Key: name, Cost: 1}
			taken, err := wrap.Begin(ctx, method.On(s.limiter), method, one, one, one)
			if err != nil {
				t.Fatal(err)
			}
			requireAdded(t, charge, 2)
			if running := s.peek(t, ratelimit.Request{Rule: run, Key: name}).Quotas[0].Remaining; running != 4 {
				t.Errorf("%s: %d more may run, want 4", name, running)
			}
			end(charge, taken)
			before, rest := s.used(t, s.tokens(50), name), s.used(t, other, name)
			err = charge.Add(ctx, 4)
			if name == "one settled" {
				before += 4
			}
			if isRuleError(err) == (name == "one settled") {
				t.Errorf("%s: got error %v", name, err)
			}
			s.requireTaken(t, s.tokens(50), name, before)
			s.requireTaken(t, other, name, rest)
			taken.Release(ctx)
		}

		_, charge := ratelimit.WithCharge(t.Context())
		without := wrap.NewRules("p.T.N", s.tokens(5))
		ctx, plain := ratelimit.WithCharge(t.Context())
		if err := wrap.Take(ctx, without.On(s.limiter), without, "k"); err != nil {
			t.Fatal(err)
		}
		open, _ := s.open(t, 1, "wrong", s.tokens(50))
		for name, err := range map[string]error{
			"nil": ratelimit.ChargeFrom(t.Context()).Add(ctx, 1), "not admitted": charge.Add(ctx, 1), "no cost=": plain.Add(ctx, 1),
			"none": open.Add(ctx, 0), "less": open.Add(ctx, -5),
		} {
			if !isRuleError(err) {
				t.Errorf("%s: got error %v", name, err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := open.Add(ended, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("under a context that has ended: got error %v", err)
		}
		s.requireTaken(t, s.tokens(50), "wrong", 1)
	})
}

// If an override gives two rules of a call one count, both add to it. A settlement of one of them keeps what the other has added.
func TestAddsOfRulesOfOneCount(t *testing.T) {
	s := inMemory(newClock())
	first, second := s.tokens(100), s.tokens(100)
	second.Per = 2 * long
	if err := s.limiter.Overrides().SetLocal("tokens", ratelimit.Override{Per: time.Hour}); err != nil {
		t.Fatal(err)
	}
	method := wrap.NewRules("p.T.M", first, second).WithCost()
	ctx, charge := ratelimit.WithCharge(t.Context())
	taken, err := wrap.Begin(ctx, method.On(s.limiter), method, wrap.Charge{Cost: 10}, wrap.Charge{Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	left := func() int64 { return s.peek(t, ratelimit.Request{Rule: first}).Quotas[0].Remaining }
	requireAdded(t, charge, 20)
	if got := left(); got != 49 {
		t.Errorf("%d are left, want 49", got)
	}
	refuseMore(t, charge, 25, "tokens")
	taken.Settle(ctx, 5, wrap.Keep)
	if got := left(); got != 74 {
		t.Errorf("%d are left after a settlement of the first rule, want 74", got)
	}
	if err := taken.Refund(ctx); err != nil || left() != 100 {
		t.Errorf("error %v, %d are left after a refund", err, left())
	}
}

// While the store fails, the failure policies decide what is added. When it is back, it all goes back to where it was taken.
func TestAddsInAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		policy ratelimit.FailurePolicy
		added  int64 // of Adds of 4 permits, in the outage
		fails  bool
		err    bool
	}{
		"closed": {ratelimit.FailClosed, 0, true, true},
		"open":   {ratelimit.FailOpen, 12, false, false},
		"local":  {ratelimit.FailLocal, 8, false, false},
		"share":  {ratelimit.FailLocalShare(2), 4, false, false},
	} {
		store := limittest.NewOutage(limittest.NewClock())
		all := &subject{store: store}
		s, events := all.observed(ratelimit.WithFailurePolicy(c.policy), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		rule := s.tokens(10)
		charge, taken := s.open(t, 1, "k", rule)
		requireAdded(t, charge, 2)
		store.Begin(nil)
		added := int64(0)
		for range 3 {
			switch err := charge.Add(t.Context(), 4); {
			case err == nil:
				added += 4
			case !c.fails:
				if !errors.Is(err, ratelimit.ErrTooManyRequests) {
					t.Errorf("%s: got error %v", name, err)
				}
			default:
				if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok {
					t.Errorf("%s: got error %v", name, err)
				}
			}
		}
		if told := (*events)[len(*events)-1]; added != c.added || told.Kind != ratelimit.EventAdded || told.Source != ratelimit.SourcePolicy {
			t.Errorf("%s: added %d, want %d; told %+v", name, added, c.added, told)
		}
		store.End()
		s.requireTaken(t, rule, "k", 3)
		requireAdded(t, charge, 5)
		s.requireTaken(t, rule, "k", 8)
		if err := taken.Refund(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.requireTaken(t, rule, "k", 0)
		store.Begin(nil)
		if _, err := s.limiter.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: "k", Cost: 5}); (err != nil) != c.err {
			t.Errorf("%s: a call of half the limit after the refund: %v", name, err)
		}
		store.End()
	}
}

// What a call took from the store goes back to the store, and what it took in an outage goes back to this process, also if
// one of its rules took nothing in the outage.
func TestAddsOfOneRuleInAnOutage(t *testing.T) {
	store := limittest.NewOutage(limittest.NewClock())
	s := (&subject{}).with(ratelimit.New(store, ratelimit.WithFailurePolicy(ratelimit.FailLocal), ratelimit.WithLogger(slog.New(slog.DiscardHandler))))
	first, second := s.tokens(20), s.tokens(20)
	first.Algorithm, second.Name, second.Algorithm = ratelimit.FixedWindow, "second", ratelimit.FixedWindow
	s.open(t, 9, "k", second)
	charge, taken := s.open(t, 2, "k", first, second)
	if err := charge.Settle(t.Context(), 2, "tokens"); err != nil {
		t.Fatal(err)
	}
	store.Begin(nil)
	requireAdded(t, charge, 8)
	store.End()
	s.requireTaken(t, second, "k", 11)
	if err := taken.Refund(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.requireTaken(t, first, "k", 0)
	s.requireTaken(t, second, "k", 9)
	store.Begin(nil)
	s.admit(t, ratelimit.Request{Rule: second, Key: "k", Cost: 20})
}

// What an Add took goes back also if an observer or a trigger panics.
func TestAddsAndPanics(t *testing.T) {
	s := inMemory(newClock())
	s.limiter = ratelimit.New(memstore.New(), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		if e.Kind == ratelimit.EventAdded {
			panic("observer")
		}
	}))
	charge, taken := s.open(t, 1, "k", s.tokens(10))
	func() {
		defer func() {
			if recover() != "observer" {
				t.Error("the panic did not come through")
			}
		}()
		_ = charge.Add(t.Context(), 3)
	}()
	s.requireTaken(t, s.tokens(10), "k", 4)
	if err := taken.Refund(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.requireTaken(t, s.tokens(10), "k", 0)
}

// Add does not wait, whatever its rules let calls wait for: it takes no place.
func TestAddsDoNotWait(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		for _, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket} {
			rule := ratelimit.Rule{Name: "tokens", Limit: 10, Per: time.Minute, Algorithm: algorithm, Wait: time.Hour}
			charge, _ := s.open(t, 8, "k", rule)
			began := time.Now()
			refuseMore(t, charge, 3, "tokens")
			requireAdded(t, charge, 2)
			if took := time.Since(began); took != 0 {
				t.Errorf("%v: Add took %v", algorithm, took)
			}
		}
	})
}
