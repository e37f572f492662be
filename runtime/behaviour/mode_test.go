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
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
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
	onPlainToo(t, func(t *testing.T, s *subject) {
		var reported []ratelimit.Outcome
		l := ratelimit.New(s.store, onShadow(func(_ context.Context, refused []ratelimit.Outcome) {
			reported = append(reported, refused...)
		}))
		rules := append(windows(3), window("token-bucket", 3, ratelimit.TokenBucket))
		for _, rule := range s.known(rules...) {
			one, other := ratelimit.Request{Rule: rule, Key: "k"}, ratelimit.Request{Rule: rule, Key: "elsewhere"}
			one.Rule.Name, one.Rule.Mode = "r", ratelimit.ModeShadow
			other.Rule.Name, other.Rule.Limit = "other", 9
			unseen := one
			unseen.Key, unseen.Cost = "unseen", 4
			s.admit(t, unseen)
			if n, err := s.limiter.Reset(t.Context(), unseen); n != 0 || err != nil {
				t.Errorf("%s: a call that is never admitted leaves %d counts, error %v", rule.Name, n, err)
			}
			four, three, two := one, one, one
			four.Cost, three.Cost, two.Cost = 4, 3, 2
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
					t.Errorf("%s: reported %+v", rule.Name, o)
				}
				for _, q := range report.Quotas() {
					if q.Rule == "r" && (q.Remaining != 2 || q.Reset <= 0) {
						t.Errorf("%s: %+v", rule.Name, q)
					}
				}
			}
		}
	})
}

// A rule in shadow mode does not reduce what an UpTo call takes. If it has fewer permits left, it reports how many.
func TestShadowOfACallUpTo(t *testing.T) {
	onEveryWindow(t, func(t *testing.T, s *subject, q ratelimit.Request) {
		q.Rule.Mode = ratelimit.ModeShadow
		upTo := q
		upTo.UpTo, upTo.Cost = true, 4
		for used := range int64(2) {
			d := s.admit(t, upTo)
			if d.Taken != 4 || len(d.Violations) != 1 || d.Violations[0].Remaining != 3-used || (d.Violations[0].RetryAfter > 0) != (used > 0) {
				t.Errorf("%d used: got %+v", used, d)
			}
			s.admit(t, q)
		}
	})
}

// Beyond its limit a rule in shadow mode reports each call. A trigger is told once, when its limit is reached. Neither refuses a call.
func TestShadowAndTrigger(t *testing.T) {
	onEveryWindow(t, func(t *testing.T, s *subject, q ratelimit.Request) {
		var fired []ratelimit.Trigger
		s = s.with(ratelimit.New(s.store, ratelimit.WithTrigger(func(_ context.Context, t ratelimit.Trigger) { fired = append(fired, t) })))
		shadow, trigger := q, q
		shadow.Rule.Mode, trigger.Rule.Mode, trigger.Rule.Name = ratelimit.ModeShadow, ratelimit.ModeTrigger, "trigger"
		for key, call := range map[string][]ratelimit.Request{"shadow": {shadow}, "trigger": {trigger}, "both": {shadow, trigger}} {
			fired = nil
			for i := range call {
				call[i].Key = key
			}
			for i := range 5 {
				d := s.admit(t, call...)
				if want := i >= 3 && key != "trigger"; (d.Violations != nil) != want {
					t.Errorf("call %d: the shadow reports %+v, want a report: %v", i+1, d.Violations, want)
				}
			}
			if want := key != "shadow"; (len(fired) == 1 && fired[0].Used == 3) != want {
				t.Errorf("fired: %+v, want once: %v", fired, want)
			}
		}
	})
}

// A rule in shadow mode with a name of its own tries out a limit beside the enforced rule. Neither takes permits from the other.
func TestShadowBesideTheRuleInForce(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		reported := 0
		l := ratelimit.New(s.store, onShadow(func(_ context.Context, refused []ratelimit.Outcome) {
			if len(refused) != 1 || refused[0].Rule != "stricter" || refused[0].Limit != 2 {
				t.Errorf("reported %+v", refused)
			}
			reported++
		}))
		inForce, stricter := window("x.X.M", 4, s.window), window("stricter", 2, s.window)
		inForce.Key, stricter.Key, stricter.Mode = "{user}", "{user}", ratelimit.ModeShadow
		rules := wrap.NewRules("x.X.M", inForce, stricter)
		for call := 1; call <= 6; call++ {
			err := wrap.Take(context.Background(), rules.On(l), rules, "ann", "ann")
			if refused := errors.Is(err, ratelimit.ErrTooManyRequests); refused != (call > 4) || reported != max(0, call-2) {
				t.Errorf("call %d: error %v, and %d reports", call, err, reported)
			}
		}
	})
}

// Rules that apply to different calls count separately if one of them has a name of its own.
func TestRulesThatExcludeEachOther(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rules := wrap.NewRules("x.X.M", window("x.X.M", 2, s.window), window("vip", 4, s.window))
		for call := range 12 {
			vip, others := wrap.Charge{Cost: int64(call % 2)}, wrap.Charge{Cost: int64(1 - call%2)}
			err := wrap.TakeCharges(context.Background(), rules.On(s.limiter), rules, others, vip)
			limit := 2 + 2*(call%2)
			if refused := errors.Is(err, ratelimit.ErrTooManyRequests); refused != (call/2 >= limit) || err != nil && !refused {
				t.Errorf("call %d: error %v", call, err)
			}
		}
	})
}

// A trigger counts whatever a call costs.
func TestTriggerOfACostAboveItsLimit(t *testing.T) {
	onEveryWindow(t, func(t *testing.T, s *subject, q ratelimit.Request) {
		var hits []ratelimit.Trigger
		s = s.with(ratelimit.New(s.store, ratelimit.WithTrigger(func(_ context.Context, hit ratelimit.Trigger) { hits = append(hits, hit) })))
		q.Rule.Mode, q.Cost = ratelimit.ModeTrigger, 1<<40
		for range 3 {
			s.admit(t, q)
		}
		if len(hits) != 1 || hits[0] != (ratelimit.Trigger{Rule: q.Rule.Name, Key: "k", Limit: 3, Used: 1 << 40}) {
			t.Errorf("got %+v", hits)
		}
	})
}

// If rules of this instance and of the fleet both refuse a call, both begin their blocks, and no trigger is called.
func TestRefusalsOfBothScopes(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		told := 0
		s = s.with(ratelimit.New(s.store, ratelimit.WithTrigger(func(context.Context, ratelimit.Trigger) { told++ })))
		rule := ratelimit.Rule{Name: "fleet", Limit: 1, Per: time.Second, Block: time.Hour}
		fleet := ratelimit.Request{Rule: rule, Key: "k"}
		rule.Name, rule.Scope = "here", ratelimit.ScopeInstance
		here := ratelimit.Request{Rule: rule, Key: "k"}
		rule.Name, rule.Block, rule.Mode = "trigger", 0, ratelimit.ModeTrigger
		trigger := ratelimit.Request{Rule: rule, Key: "k"}
		s.admit(t, fleet, here)
		first := s.refuse(t, fleet, here, trigger)
		s.pass(2 * time.Second)
		s.refuse(t, here)
		if d := s.refuse(t, fleet, trigger); !d.At.Add(d.RetryAfter).Equal(first.At.Add(time.Hour)) || told != 0 {
			t.Errorf("got %+v, and %d triggers", d, told)
		}
	})
}

// A limit that comes with a call does not change the burst of a bucket that has a Burst.
func TestLimitOfACallAndBursts(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, test := range []struct {
			rule ratelimit.Rule
			want int // calls that pass at once with a limit of 5
		}{
			{ratelimit.Rule{Algorithm: ratelimit.LeakyBucket}, 1},
			{ratelimit.Rule{Algorithm: ratelimit.LeakyBucket, Prepay: true}, 1},
			{ratelimit.Rule{Algorithm: ratelimit.TokenBucket}, 5},
			{ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Burst: 2}, 2},
			{ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Burst: 7}, 7},
			{ratelimit.Rule{Algorithm: s.window}, 5},
		} {
			test.rule.Name, test.rule.Computed, test.rule.Per = "r", true, 1000*time.Hour
			if !s.knows(test.rule) {
				continue
			}
			passed, key, rules := 0, test.rule.Algorithm.String(), wrap.NewRules("m", test.rule)
			for range 20 {
				if wrap.TakeCharges(t.Context(), rules.On(s.limiter), rules, wrap.Charge{Key: key, Cost: 1, Limit: 5}) == nil {
					passed++
				}
			}
			if passed != test.want {
				t.Errorf("%+v: %d calls passed, want %d", test.rule, passed, test.want)
			}
			if _, err := s.limiter.Reset(t.Context(), ratelimit.Request{Rule: test.rule, Key: key}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The members of a day are counted by the server's day.
func TestFault_ClientClockAtABoundaryOfMembers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	load(t, connect(t, server.Addr))
	synctest.Test(t, func(t *testing.T) { // in the year 2000
		client := redis.NewClient(&redis.Options{Addr: server.Addr})
		defer client.Close()
		defer time.Sleep(time.Minute) // on the virtual clock: until the store asks the server nothing more by itself
		wrong, right := ratelimit.New(bare{redisstore.New(client, redisstore.WithTimeout(time.Minute))}), onServer(t, server)
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
			return wrap.TakeCharges(context.Background(), rules.On(s.limiter), rules, wrap.Charge{Key: "k", Cost: cost})
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
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, rule := range s.known(windows(10)[1:]...) { // a sliding window keeps no more permits than its limit
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
	onEveryWindow(t, func(t *testing.T, s *subject, q ratelimit.Request) {
		var told []int64
		watching := s.with(ratelimit.New(s.store, ratelimit.WithTrigger(func(_ context.Context, hit ratelimit.Trigger) { told = append(told, hit.Used) })))
		watched := q
		watched.Rule.Mode = ratelimit.ModeTrigger
		for _, watched.Cost = range []int64{math.MaxInt64, 1000, math.MaxInt64, 1 << 62, 5} {
			watching.admit(t, watched)
		}
		if len(told) != 1 || told[0] != 2_000_000_000_000_000 {
			t.Errorf("told %d", told)
		}
		s.refuse(t, q)
	})
}
