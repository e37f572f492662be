package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// allow decides requests on a limiter.
func allow(t *testing.T, l *ratelimit.Limiter, requests ...ratelimit.Request) ratelimit.Decision {
	t.Helper()
	d, err := l.Allow(context.Background(), requests...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Two rules of one call that share a budget take two permits from it.
var shared = ratelimit.Rule{Name: "shared", Limit: 5, Per: time.Hour}

func with(change func(*ratelimit.Rule)) ratelimit.Request {
	rule := shared
	change(&rule)
	return ratelimit.Request{Rule: rule, Key: "k"}
}

// A rule may have the name of its method's package. It counts as a named rule, which two methods may share.
func TestSharedBudgetCalledAfterThePackage(t *testing.T) {
	l := ratelimit.New(memstore.New())
	take := func(method, key string) error {
		rules := wrap.NewRules(method, ratelimit.Rule{Name: "login", Key: key, Limit: 1, Per: time.Hour})
		return wrap.Take(t.Context(), rules.On(l), rules, "k")
	}
	if err := take("login.Service.Begin", "{phone}"); err != nil {
		t.Fatal(err)
	}
	if err := take("login.Service.Resume", "{number}"); !errors.Is(err, ratelimit.ErrTooManyRequests) {
		t.Errorf("the second call of one is answered by %v", err)
	}
}

// A call may name only one member of a budget. Each of two members would be checked as if the other were not there.
func TestTwoMembersInOneCall(t *testing.T) {
	l := ratelimit.New(memstore.New())
	rule := ratelimit.Rule{Name: "strangers", Distinct: "{who}", Limit: 1, Per: time.Hour}
	var keyError *ratelimit.KeyError
	_, err := l.Allow(context.Background(),
		ratelimit.Request{Rule: rule, Key: "k", Member: "a"}, ratelimit.Request{Rule: rule, Key: "k", Member: "b"})
	if !errors.As(err, &keyError) {
		t.Errorf("got %v, expected a KeyError", err)
	}
	same := ratelimit.Request{Rule: rule, Key: "k", Member: "a"}
	if d := allow(t, l, same, ratelimit.Request{Rule: rule, Key: "other", Member: "b"}); !d.Allowed {
		t.Errorf("got %+v", d)
	}
}

// A call may name only one anchor of a count, whose windows would otherwise begin at two times. Counts of other keys have other anchors.
func TestTwoAnchorsInOneCall(t *testing.T) {
	l := ratelimit.New(noon())
	ann := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Key: "{k}", Limit: 5, Every: "1mo"}, Key: "ann", Anchor: time.Unix(0, 0)}
	other, bob := ann, ann
	other.Anchor, bob.Key, bob.Anchor = time.Unix(1, 0), "bob", time.Unix(1, 0)
	_, allow := l.Allow(t.Context(), ann, other)
	_, peek := l.Peek(t.Context(), ann, other)
	for what, err := range map[string]error{"Allow": allow, "Peek": peek, "Give": l.Give(t.Context(), -1, ann, other)} {
		const want = "r: found two anchors for one count; expected one anchor for each call"
		if _, ok := errors.AsType[*ratelimit.KeyError](err); !ok || err.Error() != want {
			t.Errorf("%s: got error %v", what, err)
		}
	}
	if err := l.Give(t.Context(), -1, ann, bob, ann); err != nil || remaining(t, l, ann) != 3 || remaining(t, l, bob) != 4 {
		t.Errorf("%d and %d are left, error %v", remaining(t, l, ann), remaining(t, l, bob), err)
	}
}

// Every method returns a typed error for an invalid request, and charges nothing.
func TestWrongRequests(t *testing.T) {
	l, ctx := ratelimit.New(memstore.New()), context.Background()
	rule := ratelimit.Rule{Name: "r", Key: "{user}", Limit: 5, Per: time.Hour}
	bucket, strangers, endless := rule, rule, rule
	bucket.Algorithm, bucket.Prepay = ratelimit.TokenBucket, true
	strangers.Distinct, endless.Per = "{who}", 0
	good := ratelimit.Request{Rule: rule, Key: "k"}
	methods := map[string]func(...ratelimit.Request) error{
		"Allow": func(r ...ratelimit.Request) error { _, err := l.Allow(ctx, r...); return err },
		"Wait":  func(r ...ratelimit.Request) error { _, err := l.Wait(ctx, r...); return err },
		"Peek":  func(r ...ratelimit.Request) error { _, err := l.Peek(ctx, r...); return err },
		"Reset": func(r ...ratelimit.Request) error { _, err := l.Reset(ctx, r...); return err },
	}
	for _, test := range []struct {
		want    string
		methods string
		bad     []ratelimit.Request
	}{
		{"requests: found none; expected one or more", "Reset", nil},
		{"requests: found 0; expected 1 to ", "Allow Wait Peek", nil},
		{`rule "r": per: a rule needs a window`, "Allow Wait Peek Reset", []ratelimit.Request{good, {Rule: endless, Key: "k"}}},
		{"r: {user}: the key is empty", "Allow Wait Peek Reset", []ratelimit.Request{good, {Rule: rule}}},
		{"r: {who}: the member is empty", "Allow Wait Peek", []ratelimit.Request{good, {Rule: strangers, Key: "k"}}},
		{
			`rule "r": requests: found UpTo for a rule with distinct, prepay, warmup or concurrency`, "Allow Peek",
			[]ratelimit.Request{{Rule: bucket, Key: "k", UpTo: true}},
		},
		{
			`rule "r": requests: found UpTo on two requests with one count`, "Allow Peek",
			[]ratelimit.Request{{Rule: rule, Key: "k", Cost: 2, UpTo: true}, {Rule: rule, Key: "k", Cost: 2, UpTo: true}},
		},
	} {
		for _, name := range strings.Fields(test.methods) {
			err := methods[name](test.bad...)
			_, isRule := errors.AsType[*ratelimit.RuleError](err)
			_, isKey := errors.AsType[*ratelimit.KeyError](err)
			if !isRule && !isKey || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %s", name, err, test.want)
			}
		}
	}
	if _, err := l.StateKeys(ratelimit.Request{Rule: endless}); err == nil {
		t.Error("a rule that is not valid has a key")
	}
	if d, err := l.Peek(ctx, good); err != nil || d.Quotas[0].Remaining != 5 {
		t.Errorf("got %+v, error %v", d, err)
	}
}

// A limit that comes with a call is checked like the limit of a rule.
func TestWrongLimitOfACall(t *testing.T) {
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Key: "{user}", Computed: true, Per: time.Hour})
	for limit, want := range map[int64]string{
		-2:            "p.T.M: the limit of this call: found -2; expected 0 to 1000000000 for a sliding-window",
		1_000_000_001: "p.T.M: the limit of this call: found 1000000001; expected 0 to 1000000000 for a sliding-window",
	} {
		charge := wrap.Charge{Key: "k", Cost: 1, Limit: limit}
		err := wrap.TakeCharges(t.Context(), rules.On(ratelimit.New(memstore.New())), rules, charge)
		if keyError, ok := errors.AsType[*ratelimit.KeyError](err); !ok || !strings.HasPrefix(keyError.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A call of a rule with Distinct cannot cost more than one permit.
func TestCostOfAMember(t *testing.T) {
	l := ratelimit.New(memstore.New())
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Distinct: "{who}", Limit: 5, Per: time.Hour}, Key: "k", Member: "a"}
	for _, q.Cost = range []int64{2, 6} {
		_, err := l.Allow(context.Background(), q)
		if keyError, ok := errors.AsType[*ratelimit.KeyError](err); !ok || keyError.Rule != "r" {
			t.Errorf("cost %d: got %v, expected a KeyError", q.Cost, err)
		}
	}
	if q.Cost = 1; !allow(t, l, q).Allowed {
		t.Error("a cost of 1 was refused")
	}
}

// Limiter.Wait is also bounded by the rule's Queue, even if the rule has no Wait, and after an override. A queue of one accepts a call whose
// place is a fraction of a microsecond later than the time that its permit takes to leave.
func TestQueueOfARequest(t *testing.T) {
	for _, rule := range []ratelimit.Rule{
		{Name: "waits", Limit: 1, Wait: time.Hour, Queue: 2},
		{Name: "does not", Limit: 1, Queue: 2},
		{Name: "overridden", Limit: 5, Queue: 2},
		{Name: "in parts", Limit: 3, Queue: 1},
		{Name: "in more parts", Limit: 7, Queue: 5},
		{Name: "a token bucket", Algorithm: ratelimit.TokenBucket, Limit: 7, Burst: 1, Queue: 5},
		{Name: "a burst", Algorithm: ratelimit.TokenBucket, Limit: 7, Burst: 3, Queue: 5},
	} {
		t.Run(rule.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.New(memstore.New(memstore.WithClock(time.Now)))
				rule.Name, rule.Per = "r", time.Second
				if rule.Algorithm == ratelimit.SlidingWindow {
					rule.Algorithm = ratelimit.LeakyBucket
				}
				if rule.Limit == 5 {
					if err := l.Overrides().SetLocal("r", ratelimit.Override{Limit: new(int64(1))}); err != nil {
						t.Fatal(err)
					}
				}
				requireQueue(t, l, rule)
			})
		})
	}
}

// requireQueue makes many calls that may wait at the same time. It fails the test unless the burst is admitted at once, and as many calls
// wait as the rule's queue has room for.
func requireQueue(t *testing.T, l *ratelimit.Limiter, rule ratelimit.Rule) {
	var admitted, late atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for range 10 {
		all.Go(func() {
			d, err := l.Wait(context.Background(), ratelimit.Request{Rule: rule})
			switch {
			case errors.Is(err, ratelimit.ErrTooManyRequests):
			case err != nil || !d.Allowed:
				t.Error(d, err)
			case time.Since(start) > 0:
				late.Add(1)
			default:
				admitted.Add(1)
			}
		})
	}
	all.Wait()
	if now, later := admitted.Load(), late.Load(); now != max(1, rule.Burst) || later != rule.Queue {
		t.Errorf("%d calls were admitted at once and %d waited, expected %d and %d", now, later, max(1, rule.Burst), rule.Queue)
	}
	if err := l.Overrides().Err(); err != nil {
		t.Error(err)
	}
}

// The permits of a long queue and the microseconds of a long window are multiplied without an overflow.
func TestHugeQueue(t *testing.T) {
	rules := wrap.NewRules("m", ratelimit.Rule{
		Name: "r", Limit: 5_000_000, Per: 720 * time.Hour, Algorithm: ratelimit.LeakyBucket, Wait: time.Hour, Queue: 4_000_000,
	})
	if err := wrap.Take(context.Background(), rules.On(ratelimit.New(memstore.New())), rules, "k"); err != nil {
		t.Error(err)
	}
}

// A limit that comes with a call must not be so low that the time in which the rule's burst refills overflows.
func TestLimitTooLowForTheBurst(t *testing.T) {
	rules := wrap.NewRules("m", ratelimit.Rule{
		Name: "r", Computed: true, Burst: 10_000_000, Per: 3660 * 24 * time.Hour, Algorithm: ratelimit.TokenBucket,
	})
	l := ratelimit.New(memstore.New())
	for limit, want := range map[int64]bool{1: false, 999_999: false, 1_000_000: true, 10_000_000: true} {
		err := wrap.TakeCharges(context.Background(), rules.On(l), rules, wrap.Charge{Key: "k", Cost: 1, Limit: limit})
		if _, wrong := errors.AsType[*ratelimit.KeyError](err); wrong == want || want && err != nil {
			t.Errorf("limit %d: got error %v", limit, err)
		}
	}
}

// The costs of equal rules for one key are added, wherever the key comes from. Different rules of one name and window are an error, and nothing is
// charged.
func TestRulesOfOneNameInOneCall(t *testing.T) {
	var costs []int64
	l := ratelimit.New(memstore.New(), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		if e.Kind != ratelimit.EventFailed {
			for _, o := range e.Rules {
				costs = append(costs, o.Cost)
			}
		}
	}))
	equal := with(func(*ratelimit.Rule) {})
	elsewhere := with(func(r *ratelimit.Rule) { r.Key, r.Message = "{to}", "Later." })
	for _, want := range []bool{true, true, false} {
		if d := allow(t, l, equal, elsewhere); d.Allowed != want || !want && (len(d.Violations) != 1 || d.Violations[0].Remaining != 1) {
			t.Errorf("got %+v, want allowed %v: each call takes 2 permits of 5", d, want)
		}
	}
	for _, other := range []ratelimit.Request{
		with(func(r *ratelimit.Rule) { r.Limit = 6 }),
		with(func(r *ratelimit.Rule) { r.Mode = ratelimit.ModeShadow }),
		with(func(r *ratelimit.Rule) { r.Block = time.Hour }),
	} {
		_, err := l.Allow(context.Background(), equal, other)
		if wrong, ok := errors.AsType[*ratelimit.RuleError](err); !ok || wrong.Argument != "name" {
			t.Errorf("%+v: got error %v", other.Rule, err)
		}
	}
	if len(costs) != 3 || costs[0] != 2 || costs[2] != 2 {
		t.Errorf("observers see costs of %v, want 2 of each call", costs)
	}
	equal.Cost = 3
	_, err := l.Allow(context.Background(), equal, equal)
	if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); !ok || never.Cost != 6 {
		t.Errorf("6 permits of 5: got error %v", err)
	}
	if d := allow(t, l, with(func(*ratelimit.Rule) {})); !d.Allowed {
		t.Error("a call that failed was charged")
	}
}

// Two equal rules in shadow mode whose costs add up to more than the limit refuse the call, like one rule with that cost. Nothing is charged.
func TestEqualShadowsBeyondTheLimit(t *testing.T) {
	l, events := watched()
	shadow := with(func(r *ratelimit.Rule) { r.Mode = ratelimit.ModeShadow })
	other := with(func(r *ratelimit.Rule) { r.Name = "other" })
	shadow.Cost = 3
	if d := allow(t, l, shadow, other, shadow, shadow); !d.Allowed || len(d.Violations) != 1 || !d.Violations[0].Never {
		t.Errorf("got %+v", d)
	}
	if rules := (*events)[0].Rules; len(rules) != 2 || rules[0].Cost != 9 || !rules[0].Refused || rules[1].Refused {
		t.Errorf("observed %+v", rules)
	}
	if a, b := remaining(t, l, shadow), remaining(t, l, other); a != 5 || b != 4 {
		t.Errorf("%d and %d permits are left, want 5 and 4", a, b)
	}
}

// A sum of costs beyond 64 bits does not overflow.
func TestSumOfHugeCosts(t *testing.T) {
	fired := 0
	l := ratelimit.New(memstore.New(), ratelimit.WithTrigger(func(_ context.Context, hit ratelimit.Trigger) {
		if fired++; hit.Used < hit.Limit {
			t.Errorf("got %+v", hit)
		}
	}))
	q := with(func(r *ratelimit.Rule) { r.Mode = ratelimit.ModeTrigger; r.Algorithm = ratelimit.FixedWindow })
	q.Cost = 1 << 62
	allow(t, l, q, q, q)
	if fired != 1 {
		t.Errorf("fired %d times, expected once for equal rules", fired)
	}
}

// A queue bounds how long its own rule delays a call, not how long the call has waited for other rules.
func TestQueueBesideALongerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, ctx := ratelimit.New(memstore.New()), context.Background()
		here := ratelimit.Rule{Name: "here", Limit: 1, Per: 2 * time.Second, Wait: 5 * time.Second, Scope: ratelimit.ScopeInstance}
		queue := ratelimit.Rule{
			Name: "queue", Limit: 10, Per: time.Second, Algorithm: ratelimit.LeakyBucket, Wait: 5 * time.Second, Queue: 10,
		}
		rules := wrap.NewRules("p.T.M", here, queue)
		time.AfterFunc(1950*time.Millisecond, func() {
			if d, err := l.Allow(ctx, ratelimit.Request{Rule: queue}); err != nil || !d.Allowed {
				t.Errorf("a call under the queue alone: %+v, %v", d, err)
			}
		})
		for range 2 { // the second call waits for two seconds, and then for a place in the queue
			if err := wrap.Take(ctx, rules.On(l), rules, wrap.Everybody, wrap.Everybody); err != nil {
				t.Error(err)
			}
		}
	})
}

// A call waits as long as it may for permits to be released, also if another part of it is decided elsewhere, and its wait is short.
func TestShortWaitOfTwoParts(t *testing.T) {
	limiter, clock := limittest.New(t)
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Name: "run", Algorithm: ratelimit.Concurrency, Limit: 1, Wait: 40 * time.Millisecond},
		ratelimit.Rule{Name: "own", Limit: 100, Per: time.Minute, Scope: ratelimit.ScopeInstance})
	first, err := wrap.Begin(t.Context(), rules.On(limiter), rules, wrap.Charge{Cost: 1}, wrap.Charge{Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() {
		_, err := wrap.Begin(t.Context(), rules.On(limiter), rules, wrap.Charge{Cost: 1}, wrap.Charge{Cost: 1})
		gone <- err
	}()
	slept := make(chan bool)
	go func() {
		clock.AwaitSleepers(1)
		close(slept)
	}()
	select {
	case <-slept:
	case err := <-gone:
		t.Fatalf("the call does not wait: %v", err)
	}
	first.Release(t.Context())
	if err := <-gone; err != nil {
		t.Error(err)
	}
}
