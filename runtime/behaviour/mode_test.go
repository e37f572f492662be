package behaviour_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// onShadow returns an observer that calls report with the refusals by rules in shadow mode.
func onShadow(report func(context.Context, []ratelimit.Outcome)) ratelimit.Option {
	return ratelimit.WithObserver(func(ctx context.Context, e *ratelimit.Event) {
		var refused []ratelimit.Outcome
		for _, o := range e.Rules {
			if o.Refused && o.Mode == ratelimit.ModeShadow {
				refused = append(refused, o)
			}
		}
		if refused != nil {
			report(ctx, refused)
		}
	})
}

// A rule in shadow mode also reports calls that it could never admit, alone and together with another rule of its budget. It says what is left,
// and is not charged.
func TestShadowOfWhatIsNeverAdmitted(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		var reported []ratelimit.Outcome
		l := ratelimit.New(s.store, onShadow(func(_ context.Context, refused []ratelimit.Outcome) {
			reported = append(reported, refused...)
		}))
		for _, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket} {
			one := ratelimit.Request{Rule: window("r", 3, algorithm), Key: "k"}
			one.Rule.Mode = ratelimit.ModeShadow
			four, three, two := one, one, one
			four.Cost, three.Cost, two.Cost = 4, 3, 2
			other := ratelimit.Request{Rule: window("other", 9, algorithm), Key: "elsewhere"}
			s.admit(t, one)
			for i, requests := range [][]ratelimit.Request{{four}, {other, four}, {four, other}, {three, other, two}, {two, two, two}} {
				reported = nil
				ctx, report := ratelimit.WithReport(context.Background())
				if i%2 == 1 {
					ctx = context.Background()
				}
				d, err := l.Allow(ctx, requests...)
				if err != nil || !d.Allowed || len(d.Violations) != 1 || len(reported) != 1 {
					t.Fatalf("got %+v, error %v; reported %+v", d, err, reported)
				}
				if o := reported[0]; o.Rule != "r" || o.Key != "k" || o.Limit != 3 || o.Remaining != 2 || !o.Never || o.RetryAfter != 0 {
					t.Errorf("%s: reported %+v", algorithm, o)
				}
				for _, q := range report.Quotas() {
					if q.Rule == "r" && (q.Remaining != 2 || q.Reset <= 0) {
						t.Errorf("%s: %+v", algorithm, q)
					}
				}
			}
		}
	})
}

// A rule in shadow mode does not reduce what an UpTo call takes. If it has fewer permits left, it reports how many.
func TestShadowOfACallUpTo(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: window("r", 3, ratelimit.FixedWindow), Key: "k", UpTo: true, Cost: 1}
		q.Rule.Mode = ratelimit.ModeShadow
		s.admit(t, q)
		q.Cost = 4
		d := s.admit(t, q)
		if d.Taken != 4 || len(d.Violations) != 1 || d.Violations[0].Remaining != 2 || d.Violations[0].RetryAfter <= 0 {
			t.Errorf("got %+v", d)
		}
	})
}

// A rule in shadow mode with a name of its own tries out a limit beside the enforced rule. Neither takes permits from the other.
func TestShadowBesideTheRuleInForce(t *testing.T) {
	for name, store := range map[string]ratelimit.Store{
		"memory": memstore.New(), "redis": scripted(connect(t, redistest.Start(t).Addr)),
	} {
		reported := 0
		l := ratelimit.New(store, onShadow(func(_ context.Context, refused []ratelimit.Outcome) {
			if len(refused) != 1 || refused[0].Rule != "stricter" || refused[0].Limit != 2 {
				t.Errorf("%s: reported %+v", name, refused)
			}
			reported++
		}))
		inForce, stricter := window("x.X.M", 4, ratelimit.SlidingWindow), window("stricter", 2, ratelimit.SlidingWindow)
		inForce.Key, stricter.Key, stricter.Mode = "{user}", "{user}", ratelimit.ModeShadow
		rules := wrap.NewRules("x.X.M", inForce, stricter)
		for call := 1; call <= 6; call++ {
			err := wrap.Take(context.Background(), l, rules, "ann", "ann")
			if refused := errors.Is(err, ratelimit.ErrTooManyRequests); refused != (call > 4) || reported != max(0, call-2) {
				t.Errorf("%s: call %d: error %v, and %d reports", name, call, err, reported)
			}
		}
	}
}

// Rules that apply to different calls count separately if one of them has a name of its own.
func TestRulesThatExcludeEachOther(t *testing.T) {
	for name, store := range map[string]ratelimit.Store{
		"memory": memstore.New(), "redis": scripted(connect(t, redistest.Start(t).Addr)),
	} {
		l := ratelimit.New(store)
		rules := wrap.NewRules("x.X.M", window("x.X.M", 2, ratelimit.SlidingWindow), window("vip", 4, ratelimit.SlidingWindow))
		for call := range 12 {
			vip, others := wrap.Charge{Cost: int64(call % 2)}, wrap.Charge{Cost: int64(1 - call%2)}
			err := wrap.TakeCharges(context.Background(), l, rules, others, vip)
			limit := 2 + 2*(call%2)
			if refused := errors.Is(err, ratelimit.ErrTooManyRequests); refused != (call/2 >= limit) || err != nil && !refused {
				t.Errorf("%s: call %d: error %v", name, call, err)
			}
		}
	}
}

// A trigger counts whatever a call costs.
func TestTriggerOfACostAboveItsLimit(t *testing.T) {
	for name, store := range map[string]ratelimit.Store{
		"memory": memstore.New(), "redis": scripted(connect(t, redistest.Start(t).Addr)),
	} {
		var hits []ratelimit.Trigger
		l := ratelimit.New(store, ratelimit.WithTrigger(func(_ context.Context, hit ratelimit.Trigger) { hits = append(hits, hit) }))
		for _, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.SlidingCounter} {
			q := ratelimit.Request{Rule: window(algorithm.String(), 10, algorithm), Key: "k", Cost: 1 << 40}
			q.Rule.Mode = ratelimit.ModeTrigger
			hits = nil
			for range 3 {
				if d, err := l.Allow(context.Background(), q); err != nil || !d.Allowed {
					t.Fatalf("%s: got %+v, error %v", name, d, err)
				}
			}
			if len(hits) != 1 || hits[0] != (ratelimit.Trigger{Rule: q.Rule.Name, Key: "k", Limit: 10, Used: 1 << 40}) {
				t.Errorf("%s: got %+v", name, hits)
			}
		}
	}
}

// If rules of this instance and of the fleet both refuse a call, both begin their blocks, and no trigger is called.
func TestRefusalsOfBothScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		l := ratelimit.New(memstore.New(), ratelimit.WithTrigger(func(context.Context, ratelimit.Trigger) { told++ }))
		ask := func(want bool, requests ...ratelimit.Request) ratelimit.Decision {
			t.Helper()
			d, err := l.Allow(context.Background(), requests...)
			if err != nil || d.Allowed != want {
				t.Fatalf("got %+v, error %v", d, err)
			}
			return d
		}
		rule := ratelimit.Rule{Name: "fleet", Limit: 1, Per: time.Second, Block: time.Minute}
		fleet := ratelimit.Request{Rule: rule, Key: "k"}
		rule.Name, rule.Scope = "here", ratelimit.ScopeInstance
		here := ratelimit.Request{Rule: rule, Key: "k"}
		rule.Name, rule.Block, rule.Mode = "trigger", 0, ratelimit.ModeTrigger
		trigger := ratelimit.Request{Rule: rule, Key: "k"}
		ask(true, fleet, here)
		ask(false, fleet, here, trigger)
		time.Sleep(2 * time.Second)
		ask(false, here)
		if d := ask(false, fleet, trigger); d.RetryAfter != 58*time.Second || told != 0 {
			t.Errorf("got %+v, and %d triggers", d, told)
		}
	})
}

// A limit that comes with a call does not change the burst of a bucket that has a Burst.
func TestLimitOfACallAndBursts(t *testing.T) {
	l, ctx := ratelimit.New(memstore.New(memstore.WithClock(newClock().now))), context.Background()
	for _, test := range []struct {
		rule ratelimit.Rule
		want int // calls that pass at once with a limit of 5
	}{
		{ratelimit.Rule{Algorithm: ratelimit.LeakyBucket}, 1},
		{ratelimit.Rule{Algorithm: ratelimit.LeakyBucket, Prepay: true}, 1},
		{ratelimit.Rule{Algorithm: ratelimit.TokenBucket}, 5},
		{ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Burst: 2}, 2},
		{ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Burst: 7}, 7},
		{ratelimit.Rule{}, 5},
	} {
		test.rule.Name, test.rule.Computed, test.rule.Per = "r", true, time.Hour
		passed := 0
		for range 20 {
			if wrap.TakeCharges(ctx, l, wrap.NewRules("m", test.rule), wrap.Charge{Key: test.rule.Algorithm.String(), Cost: 1, Limit: 5}) == nil {
				passed++
			}
		}
		if passed != test.want {
			t.Errorf("%+v: %d calls passed, want %d", test.rule, passed, test.want)
		}
		if _, err := l.Reset(ctx, ratelimit.Request{Rule: test.rule, Key: test.rule.Algorithm.String()}); err != nil {
			t.Fatal(err)
		}
	}
}

// The members of a day are counted by the server's day.
func TestFault_ClientClockAtABoundaryOfMembers(t *testing.T) {
	server := redistest.Start(t)
	load(t, connect(t, server.Addr))
	synctest.Test(t, func(t *testing.T) { // in the year 2000
		client := redis.NewClient(&redis.Options{Addr: server.Addr})
		defer client.Close()
		defer time.Sleep(time.Minute) // on the virtual clock: until the store asks the server nothing more by itself
		wrong, right := ratelimit.New(bare{redisstore.New(client)}), onServer(t, server)
		rule := ratelimit.Rule{Name: "day", Limit: 1, Cron: yearly, Distinct: "{who}"}
		right.admit(t, ratelimit.Request{Rule: rule, Key: "k", Member: "a"})
		for member, want := range map[string]bool{"a": true, "b": false} {
			d, err := wrong.Allow(context.Background(), ratelimit.Request{Rule: rule, Key: "k", Member: member})
			if err != nil || d.Allowed != want || d.RetryAfter > 366*24*time.Hour {
				t.Errorf("%s: got %+v, error %v", member, d, err)
			}
		}
	})
}

func TestCostsOfACharge(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		rules := wrap.NewRules("m", rule)
		charge := func(cost int64) error {
			return wrap.TakeCharges(context.Background(), s.limiter, rules, wrap.Charge{Key: "k", Cost: cost})
		}
		if err := charge(0); err != nil {
			t.Error(err)
		}
		if _, ok := errors.AsType[*ratelimit.KeyError](charge(-1)); !ok {
			t.Error("a negative cost is no *KeyError")
		}
		if _, ok := errors.AsType[*ratelimit.NeverAdmissibleError](charge(4)); !ok {
			t.Error("a cost above the limit is no *NeverAdmissibleError")
		}
		if left := s.left(t, ratelimit.Request{Rule: rule, Key: "k"}); left != 3 {
			t.Errorf("%d of 3 permits are left", left)
		}
		if err := charge(3); err != nil {
			t.Error(err)
		}
		if err := charge(0); err != nil {
			t.Error(err)
		}
	})
}

// A refund of a trigger's huge cost, which was cut, gives back what was charged, and no permits of other calls.
func TestReturnOfAHugeCost(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for _, rule := range []ratelimit.Rule{
			window("counter", 10, ratelimit.SlidingCounter), window("fixed", 10, ratelimit.FixedWindow),
			{Name: "calendar", Limit: 10, Cron: yearly},
		} {
			q, watched := ratelimit.Request{Rule: rule, Key: "k", Cost: 4}, rule
			watched.Mode = ratelimit.ModeTrigger
			s.admit(t, q)
			d := s.admit(t, ratelimit.Request{Rule: watched, Key: "k", Cost: math.MaxInt64})
			if err := d.Refund(context.Background()); err != nil {
				t.Fatal(err)
			}
			if left := s.left(t, ratelimit.Request{Rule: rule, Key: "k"}); left != 6 {
				t.Errorf("%s: %d of 10 permits left, want 6", rule.Name, left)
			}
		}
	})
}

// Whatever calls cost, a trigger fires once, and the number of used permits does not shrink.
func TestTriggerOfHugeCosts(t *testing.T) {
	client := connect(t, redistest.Start(t).Addr)
	for name, store := range map[string]ratelimit.Store{
		"memory": memstore.New(), "redis": scripted(client), "plain": plain.New(client, plain.WithTimeout(patience)),
	} {
		for _, rule := range []ratelimit.Rule{
			window("sliding", 10, ratelimit.SlidingWindow), window("counter", 10, ratelimit.SlidingCounter),
			window("fixed", 10, ratelimit.FixedWindow), {Name: "calendar", Limit: 10, Cron: yearly},
		} {
			if name == "plain" && (rule.Algorithm == ratelimit.SlidingWindow && rule.Cron == "" || rule.Algorithm == ratelimit.SlidingCounter) {
				continue // not supported
			}
			var told []int64
			l := ratelimit.New(store, ratelimit.WithTrigger(func(_ context.Context, hit ratelimit.Trigger) { told = append(told, hit.Used) }))
			watched := rule
			watched.Mode = ratelimit.ModeTrigger
			for _, cost := range []int64{math.MaxInt64, 1000, math.MaxInt64, 1 << 62, 5} {
				if d, err := l.Allow(context.Background(), ratelimit.Request{Rule: watched, Key: "k", Cost: cost}); err != nil || !d.Allowed {
					t.Fatalf("%s, %s: got %+v, error %v", name, rule.Name, d, err)
				}
			}
			if len(told) != 1 || told[0] != 2_000_000_000_000_000 {
				t.Errorf("%s, %s: told %d", name, rule.Name, told)
			}
			if d, err := l.Allow(context.Background(), ratelimit.Request{Rule: rule, Key: "k"}); err != nil || d.Allowed {
				t.Errorf("%s, %s: enforced, it admits: %+v, error %v", name, rule.Name, d, err)
			}
		}
	}
}
