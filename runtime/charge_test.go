package ratelimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// watched returns a limiter in this process, on a clock that stands still, and the kinds and errors of its events.
func watched(options ...ratelimit.Option) (*ratelimit.Limiter, *[]ratelimit.Event) {
	events := new([]ratelimit.Event)
	options = append(options, ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) { *events = append(*events, *e) }))
	return ratelimit.New(noon(), options...), events
}

func remaining(t *testing.T, l *ratelimit.Limiter, q ratelimit.Request) int64 {
	t.Helper()
	d, err := l.Peek(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return d.Quotas[0].Remaining
}

// A settlement changes each charge to what the call really cost, once. A refund gives back what is charged then.
func TestSettle(t *testing.T) {
	l, events := watched()
	window := ratelimit.Request{Rule: ratelimit.Rule{Name: "w", Limit: 10, Per: time.Minute}, Key: "k", Cost: 4}
	bucket := ratelimit.Request{Rule: ratelimit.Rule{Name: "b", Algorithm: ratelimit.TokenBucket, Limit: 10, Per: time.Minute}, Key: "k", Cost: 4}
	d, err := l.Allow(t.Context(), window, bucket)
	if err != nil {
		t.Fatal(err)
	}
	for want, costs := range map[string][]int64{
		"settle: found 1 costs; expected 2, one for each request":  {1},
		"settle: found 3 costs; expected 2, one for each request":  {1, 2, 3},
		`rule "b": settle: found a cost of -1; expected 0 or more`: {1, -1},
	} {
		err := d.Settle(t.Context(), costs...)
		if _, ok := errors.AsType[*ratelimit.RuleError](err); !ok || err.Error() != want {
			t.Errorf("Settle%v: got error %v, want %s", costs, err, want)
		}
	}
	for range 2 { // the second one does nothing
		if err := d.Settle(t.Context(), 1, 9); err != nil {
			t.Fatal(err)
		}
		if w, b := remaining(t, l, window), remaining(t, l, bucket); w != 9 || b != 1 {
			t.Errorf("%d and %d permits are left, want 9 and 1", w, b)
		}
	}
	for range 2 {
		if err := d.Refund(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Settle(t.Context(), 5, 5); err != nil {
		t.Fatal(err)
	}
	if w, b := remaining(t, l, window), remaining(t, l, bucket); w != 10 || b != 10 {
		t.Errorf("%d and %d permits are left, want 10 and 10", w, b)
	}
	if kinds := kindsOf(*events); !slices.Equal(kinds, []ratelimit.EventKind{ratelimit.EventAdmitted, ratelimit.EventSettled, ratelimit.EventRefunded}) {
		t.Errorf("observed %v", kinds)
	}
}

func kindsOf(events []ratelimit.Event) (kinds []ratelimit.EventKind) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// A rule that was not asked has nothing to settle and nothing to give back.
func TestSettleOfARuleThatWasNotAsked(t *testing.T) {
	l, _ := watched()
	asked := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 10, Per: time.Minute}, Key: "k"}
	never := ratelimit.Request{Rule: ratelimit.Rule{Name: "none", Per: time.Minute, Mode: ratelimit.ModeShadow}}
	d, err := l.Allow(t.Context(), never, asked)
	if err != nil || !d.Allowed {
		t.Fatalf("got %+v, error %v", d, err)
	}
	if wrong, ok := errors.AsType[*ratelimit.RuleError](d.Settle(t.Context(), -1, 2)); !ok || wrong.Rule != "none" {
		t.Errorf("a cost below 0: got error %v", wrong)
	}
	if err := d.Settle(t.Context(), 5, 3); err != nil {
		t.Fatal(err)
	}
	if left := remaining(t, l, asked); left != 7 {
		t.Errorf("%d permits are left, want 7", left)
	}
}

// The costs of equal rules are also added in a settlement.
func TestSettleOfEqualRules(t *testing.T) {
	l, _ := watched()
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 10, Per: time.Minute}, Key: "k", Cost: 2}
	d, err := l.Allow(t.Context(), q, q)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Settle(t.Context(), 1, 2); err != nil {
		t.Fatal(err)
	}
	if left := remaining(t, l, q); left != 7 {
		t.Errorf("%d permits are left, want 7", left)
	}
}

// An override may give two rules of a wrapper one count. A settlement of one of them keeps the cost of the other.
func TestSettleOneOfEqualRules(t *testing.T) {
	for name, c := range map[string]struct{ first, second, left int64 }{
		"first":   {25, wrap.Keep, 74},
		"second":  {wrap.Keep, 25, 65},
		"both":    {25, 3, 72},
		"neither": {wrap.Keep, wrap.Keep, 89},
	} {
		l, _ := watched()
		rules := wrap.NewRules("p.T.M",
			ratelimit.Rule{Name: "tokens", Limit: 100, Per: time.Minute}, ratelimit.Rule{Name: "tokens", Limit: 100, Per: time.Hour},
		)
		if err := l.Overrides().SetLocal("tokens", ratelimit.Override{Per: 5 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		taken, err := wrap.Begin(t.Context(), rules.On(l), rules, wrap.Charge{Cost: 10}, wrap.Charge{Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		taken.Settle(t.Context(), c.first, c.second)
		if left := remaining(t, l, ratelimit.Request{Rule: rules.Rules()[0]}); left != c.left {
			t.Errorf("%s: %d permits are left, want %d", name, left, c.left)
		}
	}
}

// A wrapper settles the rules that it has a cost for. If a cost cannot be computed, the estimate stays.
func TestWrapperSettles(t *testing.T) {
	l, events := watched()
	rules := wrap.NewRules("p.T.M",
		ratelimit.Rule{Name: "tokens", Limit: 100, Per: time.Minute}, ratelimit.Rule{Name: "calls", Limit: 100, Per: time.Minute},
	)
	taken, err := wrap.Begin(t.Context(), rules.On(l), rules, wrap.Charge{Cost: 10}, wrap.Charge{Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	taken.SettleFailed(t.Context(), 0, errors.New("no usage"))
	taken.Settle(t.Context(), 25, wrap.Keep)
	for name, want := range map[string]int64{"tokens": 75, "calls": 99} {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: name, Limit: 100, Per: time.Minute}}
		if left := remaining(t, l, q); left != want {
			t.Errorf("%s: %d permits are left, want %d", name, left, want)
		}
	}
	if last := (*events)[len(*events)-2:]; last[0].Err == nil || len(last[0].Rules) != 1 || last[0].Rules[0].Rule != "tokens" || last[1].Err != nil || last[1].Kind != ratelimit.EventSettled {
		t.Errorf("observed %+v", last)
	}
}

// Requests with UpTo have equal costs also if some of them leave a cost of 1 out.
func TestUpToOneWithoutCosts(t *testing.T) {
	l := ratelimit.New(memstore.New())
	a := ratelimit.Request{Rule: ratelimit.Rule{Name: "a", Limit: 5, Per: time.Minute}, UpTo: true}
	b := ratelimit.Request{Rule: ratelimit.Rule{Name: "b", Limit: 5, Per: time.Minute}, UpTo: true, Cost: 1}
	if d, err := l.Allow(t.Context(), a, b); err != nil || d.Taken != 1 {
		t.Errorf("got %+v, error %v", d, err)
	}
}

// An UpTo call takes as many permits as every rule has, and at most its cost.
func TestUpTo(t *testing.T) {
	l, _ := watched()
	few := ratelimit.Request{Rule: ratelimit.Rule{Name: "few", Limit: 5, Per: time.Minute}, Cost: 3, UpTo: true}
	many := ratelimit.Request{Rule: ratelimit.Rule{Name: "many", Limit: 100, Per: time.Minute}, Cost: 3, UpTo: true}
	for _, want := range []int64{3, 2, 0} {
		d, err := l.Allow(t.Context(), few, many)
		if err != nil || d.Taken != want || d.Allowed != (want > 0) {
			t.Errorf("got %+v, error %v; want %d permits", d, err, want)
		}
	}
	if left := remaining(t, l, many); left != 95 {
		t.Errorf("%d permits are left, want 95", left)
	}
	other := many
	other.Cost = 4
	for _, requests := range [][]ratelimit.Request{{few, other}, {few, {Rule: many.Rule, Cost: 3}}} {
		_, err := l.Allow(t.Context(), requests...)
		if _, ok := errors.AsType[*ratelimit.RuleError](err); !ok {
			t.Errorf("got error %v", err)
		}
	}
	_, err := l.Wait(t.Context(), few)
	if _, ok := errors.AsType[*ratelimit.RuleError](err); !ok {
		t.Errorf("Wait: got error %v", err)
	}
}

// An UpTo call charges rules of both scopes the same number of permits.
func TestUpToOfBothScopes(t *testing.T) {
	for _, limits := range [][2]int64{{3, 10}, {10, 3}} {
		l, _ := watched()
		fleet := ratelimit.Request{Rule: ratelimit.Rule{Name: "fleet", Limit: limits[0], Per: time.Minute}, Cost: 5, UpTo: true}
		here := ratelimit.Request{Rule: ratelimit.Rule{Name: "here", Limit: limits[1], Per: time.Minute, Scope: ratelimit.ScopeInstance}, Cost: 5, UpTo: true}
		if d, err := l.Peek(t.Context(), fleet, here); err != nil || !d.Allowed || d.Taken != 0 {
			t.Errorf("%v: Peek: got %+v, error %v", limits, d, err)
		}
		if d, err := l.Allow(t.Context(), fleet, here); err != nil || !d.Allowed || d.Taken != 3 {
			t.Errorf("%v: got %+v, error %v; want 3 permits", limits, d, err)
		}
		if left := remaining(t, l, fleet) + remaining(t, l, here); left != 7 {
			t.Errorf("%v: %d permits are left, want 7", limits, left)
		}
	}
}

// While the store fails, an UpTo call under FailOpen takes its whole cost.
func TestUpToOfALostStore(t *testing.T) {
	l := ratelimit.New(memstore.New(memstore.WithMaxKeys(1)), ratelimit.WithFailurePolicy(ratelimit.FailOpen))
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 9, Per: time.Minute}, Cost: 5, UpTo: true}
	for _, q.Key = range []string{"a", "b"} {
		if d, err := l.Allow(t.Context(), q); err != nil || d.Taken != 5 {
			t.Errorf("got %+v, error %v; want 5 permits", d, err)
		}
	}
}

// A report has what each rule has left after the last decision under its context.
func TestReport(t *testing.T) {
	l := ratelimit.New(memstore.New())
	ctx, report := ratelimit.WithReport(t.Context())
	minute := ratelimit.Request{Rule: ratelimit.Rule{Name: "minute", Algorithm: ratelimit.FixedWindow, Limit: 2, Per: time.Minute}, Key: "k"}
	hour := ratelimit.Request{Rule: ratelimit.Rule{Name: "hour", Algorithm: ratelimit.TokenBucket, Limit: 10, Per: time.Hour, Burst: 4}, Key: "k"}
	for range 3 {
		if _, err := l.Allow(ctx, minute, hour); err != nil {
			t.Fatal(err)
		}
	}
	quotas := report.Quotas()
	if len(quotas) != 2 || quotas[0].Remaining != 0 || quotas[0].Limit != 2 || quotas[1].Remaining != 2 || quotas[1].Limit != 4 {
		t.Fatalf("got %+v", quotas)
	}
	if reset := quotas[0].Reset; reset <= 0 || reset > time.Minute {
		t.Errorf("the window resets after %s", reset)
	}
	for _, unasked := range []context.Context{t.Context(), ratelimit.WithoutReport(ctx)} {
		if d, err := l.Allow(unasked, hour); err != nil || d.Quotas != nil {
			t.Errorf("quotas that nobody asked for: %+v, error %v", d.Quotas, err)
		}
	}
	if again := report.Quotas(); again[1].Remaining != 2 {
		t.Errorf("got %+v", again)
	}
}

// A settlement charges a bucket at most what it gains in 24 hours. Observers get an error from the first permit beyond that.
func TestDebtOfASettlement(t *testing.T) {
	for _, c := range []struct {
		rule ratelimit.Rule
		most int64
	}{
		{ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Burst: 5}, 5 + 24*60},
		{ratelimit.Rule{Algorithm: ratelimit.LeakyBucket}, 1 + 24*60},
		{ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Prepay: true, Burst: 5}, 5 + 24*60},
		{ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Warmup: time.Hour}, 24*60 - 2}, // the first permit takes nearly three minutes
	} {
		c.rule.Name, c.rule.Limit, c.rule.Per = "b", 1, time.Minute
		for _, cost := range []int64{c.most - 1, c.most, c.most + 1, c.most + 100, 1 << 60} {
			l, events := watched()
			q := ratelimit.Request{Rule: c.rule, Key: "k"}
			d := allow(t, l, q)
			if err := d.Settle(t.Context(), cost); err != nil {
				t.Fatal(err)
			}
			told, want := (*events)[1], ""
			if cost > c.most {
				want = fmt.Sprintf("charged %d, as a debt lasts at most 24 hours", c.most)
			}
			if text := fmt.Sprint(told.Err); told.Kind != ratelimit.EventSettled || (told.Err != nil) != (cost > c.most) || !strings.Contains(text, want) {
				t.Errorf("%s: a settlement of %d is told as %+v; want %q", c.rule.Window(), cost, told, want)
			}
			after, err := l.Peek(t.Context(), q)
			if err != nil || after.Allowed || after.RetryAfter > 24*time.Hour+time.Minute {
				t.Errorf("%s: after a settlement of %d: %+v, error %v", c.rule.Window(), cost, after, err)
			}
		}
	}
}

// A settlement under a window is charged in full: a raised limit shows so. Only a sliding window takes no more than its limit at once.
func TestSettlementOfAWindow(t *testing.T) {
	for _, c := range []struct {
		rule ratelimit.Rule
		left int64 // of a limit of 101, after a settlement of 100
	}{
		{ratelimit.Rule{Algorithm: ratelimit.FixedWindow, Per: 48 * time.Hour}, 1},
		{ratelimit.Rule{Algorithm: ratelimit.SlidingCounter, Per: 48 * time.Hour}, 1},
		{ratelimit.Rule{Cron: "@monthly"}, 1},
		{ratelimit.Rule{Per: 48 * time.Hour}, 99}, // the permit of the call, and one that the settlement takes
	} {
		c.rule.Name, c.rule.Limit = "w", 1
		l, events := watched()
		q := ratelimit.Request{Rule: c.rule, Key: "k"}
		d := allow(t, l, q)
		if err := d.Settle(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		if told := (*events)[1]; told.Kind != ratelimit.EventSettled || told.Err != nil {
			t.Errorf("%s: the settlement is told as %+v", c.rule.Window(), told)
		}
		if err := l.Overrides().SetLocal("w", ratelimit.Override{Limit: new(int64(101))}); err != nil {
			t.Fatal(err)
		}
		if left := remaining(t, l, q); left != c.left {
			t.Errorf("%s: %d permits left, want %d", c.rule.Window(), left, c.left)
		}
	}
}

// A call may go into a debt of 24 hours, or of one permit, and no further.
func TestDebtOfAPrepaidCall(t *testing.T) {
	for _, c := range []struct {
		rule ratelimit.Rule
		most int64
	}{
		{ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Limit: 1, Per: time.Minute, Prepay: true}, 24 * 60},
		{ratelimit.Rule{Algorithm: ratelimit.LeakyBucket, Limit: 1, Per: time.Hour, Prepay: true}, 24},
		{ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Limit: 1, Per: 7 * 24 * time.Hour, Prepay: true}, 1},
		{ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Limit: 1, Per: time.Minute, Warmup: 2 * time.Hour}, 23 * 60},
	} {
		l, _ := watched()
		c.rule.Name = "b"
		_, err := l.Allow(t.Context(), ratelimit.Request{Rule: c.rule, Key: "k", Cost: c.most + 1})
		if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); !ok || never.Limit != c.most {
			t.Errorf("%s: one above %d: got error %v", c.rule.Window(), c.most, err)
		}
		one := ratelimit.Request{Rule: c.rule, Key: "k"}
		if c.rule.Algorithm == ratelimit.TokenBucket && c.rule.Warmup == 0 {
			allow(t, l, one) // empties the bucket, so that all of the next cost is debt
		}
		q := one
		if q.Cost = c.most; !allow(t, l, q).Allowed {
			t.Errorf("%s: a cost of %d is refused", c.rule.Window(), c.most)
		}
		if d, err := l.Peek(t.Context(), one); err != nil || d.RetryAfter > max(24*time.Hour, c.rule.Per) {
			t.Errorf("%s: a debt lasts %s, error %v", c.rule.Window(), d.RetryAfter, err)
		}
	}
}

// A settlement that is tried again changes only what is left. A refund then gives all of it back: what the first attempt took, too.
func TestSecondSettlement(t *testing.T) {
	store := limittest.NewOutage(limittest.NewClock())
	l := ratelimit.New(store, ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	bucket := ratelimit.Request{
		Rule: ratelimit.Rule{Name: "b", Algorithm: ratelimit.TokenBucket, Limit: 1, Per: time.Hour, Scope: ratelimit.ScopeInstance}, Key: "k",
	}
	window := ratelimit.Request{Rule: ratelimit.Rule{Name: "w", Limit: 10, Per: time.Minute}, Key: "k"}
	d := allow(t, l, bucket, window)
	store.Begin(nil)
	if err := d.Settle(t.Context(), 31, 3); err == nil {
		t.Fatal("a settlement is no error, although the store is away")
	}
	store.End()
	if err := d.Settle(t.Context(), 31, 3); err != nil || remaining(t, l, window) != 7 {
		t.Fatalf("error %v, %d permits are left, want 7", err, remaining(t, l, window))
	}
	if err := d.Refund(t.Context()); err != nil || remaining(t, l, bucket) != 1 || remaining(t, l, window) != 10 {
		t.Errorf("error %v, %d and %d permits are left, want 1 and 10", err, remaining(t, l, bucket), remaining(t, l, window))
	}
}

// An override does not give two different rules of a method one count: one of them stays as it is, and Err says so.
func TestOverrideOfTwoRulesOfAMethod(t *testing.T) {
	for per, want := range map[time.Duration][2]time.Duration{
		2 * time.Minute: {2 * time.Minute, time.Hour}, // the first one changes
		time.Hour:       {time.Second, time.Hour},     // the second one has that window
		time.Second:     {time.Second, time.Hour},
	} {
		l := ratelimit.New(memstore.New())
		rules := wrap.NewRules("p.T.M", ratelimit.Rule{Limit: 5, Per: time.Second}, ratelimit.Rule{Limit: 9, Per: time.Hour})
		if err := l.Overrides().SetLocal("p.T.M", ratelimit.Override{Per: per}); err != nil {
			t.Fatal(err)
		}
		ctx, report := ratelimit.WithReport(t.Context())
		if err := wrap.Take(ctx, rules.On(l), rules, "", ""); err != nil {
			t.Errorf("per=%v: got error %v", per, err)
			continue
		}
		for i, q := range report.Quotas() {
			if p, _ := q.Policy(); p.Window != want[i] || q.Remaining != []int64{4, 8}[i] {
				t.Errorf("per=%v: got %+v, want a window of %v", per, q, want[i])
			}
		}
		if err := l.Overrides().Err(); err == nil || l.Status().Unusable != 1 {
			t.Errorf("per=%v: got error %v, %d settings that a rule cannot have; want one", per, err, l.Status().Unusable)
		}
	}
}

// Whichever rules of a call have one count, each rule has its own cost in it: in the charge, in a settlement of some of the rules, and in a refund.
func TestCostsOfRulesOfOneCount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l, _ := watched()
		all := make([]ratelimit.Rule, 5)
		for i := range all {
			all[i] = ratelimit.Rule{Name: "r", Key: fmt.Sprintf("{%c}", 'a'+i), Limit: 1000, Per: time.Minute}
		}
		rules := wrap.NewRules("p.T.M", all...)
		charges, settled := make([]wrap.Charge, len(all)), make([]int64, len(all))
		used, after := map[string]int64{}, map[string]int64{}
		for i := range charges {
			c := wrap.Charge{
				Key: rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "key"), Cost: rapid.Int64Range(0, 3).Draw(rt, "cost"),
				Skip: rapid.IntRange(0, 3).Draw(rt, "skips") == 0,
			}
			charges[i], settled[i] = c, rapid.SampledFrom([]int64{wrap.Keep, 0, 2, 7}).Draw(rt, "settled")
			if c.Skip {
				continue
			}
			used[c.Key] += c.Cost
			if after[c.Key] += c.Cost; settled[i] != wrap.Keep {
				after[c.Key] += settled[i] - c.Cost
			}
		}
		check := func(when string, want map[string]int64) {
			rt.Helper()
			for _, key := range []string{"x", "y"} {
				if got := 1000 - remaining(t, l, ratelimit.Request{Rule: rules.Rules()[0], Key: key}); got != want[key] {
					rt.Fatalf("%s, %s has used %d, want %d", when, key, got, want[key])
				}
			}
		}
		taken, err := wrap.Begin(t.Context(), rules.On(l), rules, charges...)
		if err != nil {
			rt.Fatal(err)
		}
		check("after the call", used)
		taken.Settle(t.Context(), settled...)
		check("after the settlement", after)
		if err := taken.Refund(t.Context()); err != nil {
			rt.Fatal(err)
		}
		check("after the refund", nil)
	})
}

// The error of a Charge without an admitted call says what is missing: WithCharge, or the call.
func TestChargeWithoutACall(t *testing.T) {
	ctx, empty := ratelimit.WithCharge(t.Context())
	for charge, want := range map[*ratelimit.Charge]string{
		ratelimit.ChargeFrom(t.Context()): "there is no Charge in this context; call WithCharge before the wrapper",
		empty:                             "no call was admitted under the context of WithCharge",
	} {
		for what, err := range map[string]error{"add": charge.Add(ctx, 1), "settle": charge.Settle(ctx, 1)} {
			if _, ok := errors.AsType[*ratelimit.RuleError](err); !ok || err.Error() != what+": "+want {
				t.Errorf("got error %v, want %s: %s", err, what, want)
			}
		}
	}
}

// An error of a Charge that is about no rule names the method, and does not call it a rule.
func TestErrorsOfAMethod(t *testing.T) {
	l, _ := watched()
	rule := ratelimit.Rule{Name: "r", Limit: 100, Per: time.Minute}
	begin := func(rules *wrap.Rules) (*ratelimit.Charge, *wrap.Taken) {
		ctx, charge := ratelimit.WithCharge(t.Context())
		taken, err := wrap.Begin(ctx, rules.On(l), rules, wrap.Charge{Cost: 10})
		if err != nil {
			t.Fatal(err)
		}
		return charge, taken
	}
	free, _ := begin(wrap.NewRules("p.T.Free", rule))
	settled, _ := begin(wrap.NewRules("p.T.Settled", rule).WithCost())
	over, taken := begin(wrap.NewRules("p.T.Over", rule).WithCost())
	taken.Release(t.Context())
	if err := settled.Settle(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	_, many := ratelimit.Prepare("p.T.Many", make([]ratelimit.Rule, 256)...)
	for want, err := range map[string]error{
		"p.T.Free: add: cost= is missing in the rules of this method":    free.Add(t.Context(), 1),
		"p.T.Free: settle: cost= is missing in the rules of this method": free.Settle(t.Context(), 1),
		"p.T.Free: settle: found a cost of -1; expected 0 or more":       free.Settle(t.Context(), -1),
		"p.T.Free: add: found 0 permits; expected 1 or more":             free.Add(t.Context(), 0),
		"p.T.Settled: add: the call is settled or refunded":              settled.Add(t.Context(), 1),
		"p.T.Over: add: the call has ended":                              over.Add(t.Context(), 1),
		"p.T.Many: rules: found 256; expected at most 255":               many,
	} {
		wrong, _ := errors.AsType[*ratelimit.RuleError](err)
		if method, _, _ := strings.Cut(want, ":"); wrong == nil || wrong.Rule != method || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
		if text, err := json.Marshal(wrong); err != nil || bytes.Contains(text, []byte(`"rule":`)) || !bytes.Contains(text, []byte(`"method":"p.T.`)) {
			t.Errorf("got %s, error %v", text, err)
		}
	}
}

// A call that grows while it is settled is charged what a settlement says, or what it has taken. Of two rules of one count, of which only one is settled,
// the other keeps what it took.
func TestAddBesideSettle(t *testing.T) {
	for range 20 {
		l := ratelimit.New(noon())
		rules := wrap.NewRules("p.T.M",
			ratelimit.Rule{Name: "tokens", Limit: 1000, Per: time.Minute}, ratelimit.Rule{Name: "tokens", Limit: 1000, Per: time.Hour},
		).WithCost()
		if err := l.Overrides().SetLocal("tokens", ratelimit.Override{Per: 5 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		ctx, charge := ratelimit.WithCharge(t.Context())
		taken, err := wrap.Begin(ctx, rules.On(l), rules, wrap.Charge{Cost: 10}, wrap.Charge{Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		var added atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 10 {
					if charge.Add(ctx, 2) == nil {
						added.Add(2)
					}
				}
			})
		}
		all.Go(func() {
			if taken.Applies(0) {
				taken.Settle(ctx, 25, wrap.Keep)
			}
		})
		all.Wait()
		if left := remaining(t, l, ratelimit.Request{Rule: rules.Rules()[0]}); left != 1000-25-1-added.Load() {
			t.Fatalf("%d permits are left after %d more", left, added.Load())
		}
	}
}

// A call under windows of anchors grows by the anchor that it began with, also if its window has ended meanwhile. An Add that fails takes nothing, and
// says so in its event.
func TestAddByAnAnchor(t *testing.T) {
	clock := limittest.NewClock()
	outage := limittest.NewOutage(clock)
	var last ratelimit.Event
	l := ratelimit.New(outage, ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		last = *e
		last.Rules = slices.Clone(e.Rules)
	}))
	rule := ratelimit.Rule{Name: "months", Key: "{c}", Limit: 100, Every: "1mo"}
	rules, since := wrap.NewRules("Add", rule).WithCost(), clock.Now().AddDate(-1, 0, 3)
	ctx, charge := ratelimit.WithCharge(t.Context())
	if _, err := wrap.Begin(ctx, rules.On(l), rules, wrap.Charge{Key: "ann", Cost: 10, Anchor: since}); err != nil {
		t.Fatal(err)
	}
	wantLeft := func(want int64) {
		t.Helper()
		if got := remaining(t, l, ratelimit.Request{Rule: rule, Key: "ann"}); got != want {
			t.Errorf("%d are left; expected %d", got, want)
		}
	}
	wantLast := func(kind ratelimit.EventKind, before, cost int64) {
		t.Helper()
		if last.Kind != kind || len(last.Rules) != 1 || last.Rules[0].CostBefore != before || last.Rules[0].Cost != cost {
			t.Errorf("event %s with %+v; expected %s from %d to %d", last.Kind, last.Rules, kind, before, cost)
		}
	}
	add := func() error { return charge.Add(ctx, 5) }
	if err := add(); err != nil {
		t.Fatal(err)
	}
	wantLast(ratelimit.EventAdded, 10, 15)
	wantLeft(85)
	outage.Begin(errors.New("as the test wants it"))
	if _, ok := errors.AsType[*ratelimit.StoreError](add()); !ok {
		t.Error("no error of a store that fails")
	}
	wantLast(ratelimit.EventAdded, 15, 15)
	outage.End()
	wantLeft(85)
	clock.Advance(4 * 24 * time.Hour) // to the next window
	if err := add(); err != nil {
		t.Fatal(err)
	}
	wantLast(ratelimit.EventAdded, 15, 20)
	wantLeft(95)
	if err := charge.Settle(ctx, 17); err != nil {
		t.Fatal(err)
	}
	wantLeft(98)
}
