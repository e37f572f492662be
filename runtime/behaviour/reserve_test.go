package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// placing are rules of each kind that keeps places, of one permit a minute.
var placing = []ratelimit.Rule{
	{Name: "sliding-window", Limit: 1, Per: time.Minute},
	{Name: "amounts", Limit: 1, Per: time.Minute, Amounts: true},
	{Name: "fixed-window", Limit: 1, Per: time.Minute, Algorithm: ratelimit.FixedWindow},
	{Name: "calendar", Limit: 1, Cron: "* * * * *"},
	{Name: "token-bucket", Limit: 1, Per: time.Minute, Algorithm: ratelimit.TokenBucket},
	{Name: "leaky-bucket", Limit: 1, Per: time.Minute, Algorithm: ratelimit.LeakyBucket},
	{Name: "prepaid", Limit: 1, Per: time.Minute, Algorithm: ratelimit.LeakyBucket, Prepay: true},
	{Name: "warmup", Limit: 1, Per: time.Minute, Algorithm: ratelimit.TokenBucket, Warmup: time.Second},
}

// place fails the test unless the call gets a place.
func (s *subject) place(t *testing.T, requests ...ratelimit.Request) ratelimit.Decision {
	t.Helper()
	d, err := s.limiter.Reserve(context.Background(), requests...)
	if err != nil || !d.Allowed {
		t.Fatalf("Reserve: got %+v, error %v", d, err)
	}
	return d
}

// Three callers at once are told three times, which calls of Allow and Wait then do not get.
func TestThreeCallersAreToldThreeTimes(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		s.limiter = ratelimit.New(bare{s.store})
		for _, rule := range placing {
			q, places, start := ratelimit.Request{Rule: rule, Key: "k"}, make([]time.Time, 3), time.Now()
			var all sync.WaitGroup
			for i := range places {
				all.Go(func() {
					d, err := s.limiter.Reserve(t.Context(), q)
					if places[i] = d.At; err != nil || !d.Allowed || d.Delay != d.At.Sub(start) || len(d.Violations) > 0 || d.RetryAfter != 0 {
						t.Errorf("%s: got %+v, error %v", rule.Name, d, err)
					}
				})
			}
			all.Wait()
			slices.SortFunc(places, time.Time.Compare)
			if took := time.Since(start); took != 0 || !places[0].Equal(start) {
				t.Errorf("%s: places %v; they took %v", rule.Name, places, took)
			}
			d, err := ratelimit.New(bare{s.store}).Wait(t.Context(), q)
			if err != nil || !time.Now().Equal(d.At) || d.Delay != 0 {
				t.Errorf("%s: Wait: got %+v, error %v", rule.Name, d, err)
			}
			for i, at := range append(places[1:], d.At) {
				if gap := at.Sub(places[i]); gap < rule.Per-time.Second || gap > time.Minute+2*time.Second || rule.Cron != "" && at.Second() != 0 {
					t.Errorf("%s: place %d is %v after the one before", rule.Name, i+1, gap)
				}
			}
			if refused := s.allow(t, q); refused.Allowed && rule.Cron == "" {
				t.Errorf("%s: Allow passes at the place of another", rule.Name)
			}
		}
	})
}

// A place that is given back before its time leaves what a call leaves that gives up waiting. It is given back once, and after its time as any charge.
func TestRefundOfAPlace(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for _, rule := range placing {
			q := ratelimit.Request{Rule: rule, Key: "k"}
			if rule.Per > 0 {
				q.Rule.Per = time.Hour
			} else {
				q.Rule.Cron = yearly
			}
			s.admit(t, q)
			for range 3 {
				first, second := s.place(t, q), s.place(t, q)
				if !second.At.After(first.At) || first.Delay <= 0 {
					t.Fatalf("%s: places %v and %v", rule.Name, first.At, second.At)
				}
				for range 2 {
					if err := errors.Join(first.Refund(t.Context()), second.Refund(t.Context())); err != nil {
						t.Fatal(err)
					}
				}
				if d := s.refuse(t, q); d.RetryAfter > first.Delay {
					t.Errorf("%s: after the refunds the next call passes in %v, want up to %v", rule.Name, d.RetryAfter, first.Delay)
				}
			}
		}
	})
}

// A refund before the place closes a window that a rule in shadow mode opened when it counted the call, as a call does that gives up waiting.
func TestRefundOfAPlaceClosesTheWindowOfAShadow(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		full := ratelimit.Request{Rule: window("full", 1, ratelimit.SlidingWindow), Key: "k"}
		s.admit(t, full)
		watched := ratelimit.Request{Rule: window("watched", 1, ratelimit.FixedWindow), Key: "k"}
		shadow := watched
		shadow.Rule.Mode = ratelimit.ModeShadow
		d := s.place(t, shadow, full)
		s.refuse(t, watched)
		if err := d.Refund(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Millisecond)
		opened := s.admit(t, watched)
		s.requireEnd(t, s.refuse(t, watched), opened.At, time.Hour)
	})
}

// Some of the permits of a place may be settled back, and then the rest. Whatever is settled and given back, the limit holds.
func TestSettlementsOfPlaces(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		s.limiter = ratelimit.New(bare{s.store})
		for _, rule := range placing[:6] {
			if rule.Cron != "" || rule.Algorithm == ratelimit.FixedWindow {
				continue // requireLimit does not know which windows were closed
			}
			if rule.Limit, rule.Burst = 6, 3; rule.Algorithm != ratelimit.TokenBucket {
				rule.Burst = 0
			}
			type place struct {
				ratelimit.Decision
				cost int64
			}
			random, places := rand.New(rand.NewPCG(1, 2)), []place{}
			for n := range 300 {
				time.Sleep(time.Duration(random.IntN(3)) * 5 * time.Second)
				q := ratelimit.Request{Rule: rule, Key: "k", Cost: 1}
				if rule.Algorithm != ratelimit.LeakyBucket {
					q.Cost += random.Int64N(3)
				}
				switch i := len(places) - 1 - random.IntN(4); {
				case n%2 == 0 || i < 0:
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
					if d, err := s.limiter.Reserve(ctx, q); err != nil {
						t.Fatal(err)
					} else if d.Allowed {
						places = append(places, place{d, q.Cost})
					}
					cancel()
				case !places[i].At.After(time.Now()):
				default:
					p := &places[i]
					var err error
					if random.IntN(2) == 0 && p.cost > 1 {
						p.cost = 1
						err = p.Settle(t.Context(), 1)
					} else {
						p.cost = 0
						err = p.Refund(t.Context())
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			var at []int64
			for _, p := range places {
				at = append(at, slices.Repeat([]int64{p.At.UnixMicro()}, int(p.cost))...)
			}
			if len(at) < 100 {
				t.Fatalf("%s: only %d permits were used", rule.Name, len(at))
			}
			requireLimit(t, rule, at)
		}
	})
}

// Where no place can be kept now, the call is refused at once by the rules that do not admit it now, and nothing is charged.
func TestNoPlaceNow(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		s.limiter = ratelimit.New(bare{s.store})
		leaky := ratelimit.Rule{Name: "leaky", Limit: 1, Per: time.Minute, Algorithm: ratelimit.LeakyBucket, Queue: 2}
		fixed := ratelimit.Rule{Name: "fixed", Limit: 1, Per: time.Minute, Algorithm: ratelimit.FixedWindow}
		own := ratelimit.Rule{Name: "own", Limit: 2, Per: time.Hour}
		shared := ratelimit.Rule{Name: "shared", Limit: 5, Per: time.Minute, Burst: 5, Algorithm: ratelimit.TokenBucket}
		for _, test := range []struct {
			what     string
			within   time.Duration
			before   int
			requests []ratelimit.Request
			want     []ratelimit.Violation
		}{
			{"the queue is full", time.Hour, 3, []ratelimit.Request{{Rule: leaky, Key: "k"}}, []ratelimit.Violation{{Rule: "leaky", RetryAfter: 3 * time.Minute}}},
			{"the deadline is too near", 30 * time.Second, 1, []ratelimit.Request{{Rule: leaky, Key: "deadline"}}, []ratelimit.Violation{{Rule: "leaky", RetryAfter: time.Minute}}},
			{"too many windows are ahead", forever, 65, []ratelimit.Request{{Rule: fixed, Key: "k"}}, []ratelimit.Violation{{Rule: "fixed", RetryAfter: 65 * time.Minute}}},
			{
				"a bucket keeps no place for the time of another rule", 24 * time.Hour, 1, []ratelimit.Request{{Rule: own, Key: "k", Cost: 2}, {Rule: shared, Key: "k", Cost: 2}},
				[]ratelimit.Violation{{Rule: "own", RetryAfter: time.Hour}},
			},
		} {
			for range test.before {
				for _, q := range test.requests {
					s.place(t, q)
				}
			}
			first := s.peek(t, test.requests...)
			start := time.Now()
			reserve := func() (ratelimit.Decision, error) {
				ctx, cancel := context.WithTimeout(t.Context(), test.within)
				defer cancel()
				return s.limiter.Reserve(ctx, test.requests...)
			}
			d, err := reserve()
			var got []ratelimit.Violation
			var longest time.Duration
			for _, v := range d.Violations {
				got = append(got, ratelimit.Violation{Rule: v.Rule, Remaining: v.Remaining, RetryAfter: v.RetryAfter})
				longest = max(longest, v.RetryAfter)
			}
			if err != nil || d.Allowed || d.Delay != 0 || !slices.Equal(got, test.want) || d.RetryAfter != longest || !d.At.Equal(start) || !time.Now().Equal(start) {
				t.Errorf("%s: got %+v, error %v", test.what, d, err)
			}
			if again := s.peek(t, test.requests...); fmt.Sprint(again) != fmt.Sprint(first) {
				t.Errorf("%s: something was charged: %+v, then %+v", test.what, first, again)
			}
			time.Sleep(d.RetryAfter)
			if d, err := reserve(); err != nil || !d.Allowed {
				t.Errorf("%s: asked again: got %+v, error %v", test.what, d, err)
			}
		}
	})
}

// What cannot be reserved is a *RuleError that says why, and charges nothing.
func TestRulesUnderWhichNothingIsReserved(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		ok := ratelimit.Request{Rule: window("ok", 1, ratelimit.SlidingWindow), Key: "k"}
		here := ratelimit.Request{Rule: window("here", 1, ratelimit.SlidingWindow), Key: "k"}
		here.Rule.Scope = ratelimit.ScopeInstance
		pausable := ratelimit.Request{Rule: window("far", 1, ratelimit.LeakyBucket), Key: "k"}
		pausable.Rule.Pausable = true
		for text, requests := range map[string][]ratelimit.Request{
			`rule "c": reserve: does not go with concurrency`:         {{Rule: ratelimit.Rule{Name: "c", Limit: 1, Algorithm: ratelimit.Concurrency}}, ok},
			`rule "d": reserve: does not go with distinct=`:           {ok, {Rule: ratelimit.Rule{Name: "d", Limit: 1, Per: time.Hour, Distinct: "{who}"}, Key: "k", Member: "a"}},
			`rule "s": reserve: does not go with sliding-counter`:     {{Rule: window("s", 1, ratelimit.SlidingCounter), Key: "k"}, ok},
			`rule "far": reserve: does not go with pause=`:            {ok, pausable},
			`rule "ok": requests: found UpTo in Wait or Reserve`:      {{Rule: ok.Rule, Key: "k", UpTo: true}},
			`reserve: found scope=instance and scope=fleet in one ca`: {ok, here},
			`requests: found 0`: {},
		} {
			d, err := s.limiter.Reserve(t.Context(), requests...)
			if _, is := errors.AsType[*ratelimit.RuleError](err); !is || !strings.HasPrefix(err.Error(), text) || d.Allowed {
				t.Errorf("%s: got %+v, error %v", text, d, err)
			}
		}
		s.admit(t, ok)
		s.place(t, ok) // it is full
		s.place(t, here, ratelimit.Request{Rule: here.Rule, Key: "another"})
		s.place(t, here)
		if d := s.refuse(t, here); d.RetryAfter < time.Hour {
			t.Errorf("a place in this process is also for %+v", d)
		}
	})
}

// Rules in other modes refuse nothing, so they keep no places: they count the call when it reserves.
func TestReserveUnderAShadow(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		hits := 0
		s.limiter = ratelimit.New(s.store, ratelimit.WithTrigger(func(context.Context, ratelimit.Trigger) { hits++ }))
		full := ratelimit.Request{Rule: window("full", 1, ratelimit.SlidingWindow), Key: "k"}
		s.admit(t, full)
		requests := []ratelimit.Request{full}
		for name, rule := range map[string]ratelimit.Rule{
			"members":    {Per: time.Hour, Distinct: "{who}", Mode: ratelimit.ModeTrigger},
			"running":    {Algorithm: ratelimit.Concurrency, Mode: ratelimit.ModeShadow},
			"counter":    {Per: time.Hour, Algorithm: ratelimit.SlidingCounter, Mode: ratelimit.ModeTrigger},
			"other refu": {Per: time.Hour, Mode: ratelimit.ModeShadow},
		} {
			rule.Name, rule.Limit = strings.ReplaceAll(name, " ", "-"), 1
			requests = append(requests, ratelimit.Request{Rule: rule, Key: "k"})
			if rule.Distinct != "" {
				requests[len(requests)-1].Member = "a"
			}
		}
		if d := s.place(t, requests...); d.Delay == 0 || hits != 2 || len(d.Violations) > 0 {
			t.Errorf("got %+v, and %d triggers", d, hits)
		}
		if d := s.place(t, requests...); d.Delay == 0 || hits != 2 || len(d.Violations) != 2 {
			t.Errorf("got %+v, and %d triggers", d, hits)
		}
	})
}

// A call whose keys may be on different servers is no single step. No place is kept then, whatever the policy for outages.
func TestReserveOnSeveralServers(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr}, ReadTimeout: patience})
	t.Cleanup(func() { _ = ring.Close() })
	for name, client := range map[string]redis.UniversalClient{
		"cluster": connectCluster(t, servers), "ring": ring, "behind a client that does not show it": struct{ redis.UniversalClient }{connectCluster(t, servers)},
	} {
		s := &subject{limiter: ratelimit.New(scripted(client), ratelimit.WithPrefix(fmt.Sprint(len(name))), ratelimit.WithFailurePolicy(ratelimit.FailOpen))}
		rule := ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour}
		var requests []ratelimit.Request
		for i := range 8 {
			requests = append(requests, ratelimit.Request{Rule: rule, Key: fmt.Sprint("subject", i)})
		}
		d, err := s.limiter.Reserve(t.Context(), requests...)
		if e, is := errors.AsType[*ratelimit.RuleError](err); !is || e.Argument != "reserve" || !strings.Contains(e.Reason, "expected one key") || d.Allowed {
			t.Errorf("%s: got %+v, error %v", name, d, err)
		}
		rule.Name = "other"
		for _, q := range requests {
			s.admit(t, q)
			if d := s.place(t, q, ratelimit.Request{Rule: rule, Key: q.Key}); d.Delay < 50*time.Minute {
				t.Errorf("%s: got %+v", name, d)
			}
		}
	}
}

// Without scripts no place is kept.
func TestReserveWithoutScripts(t *testing.T) {
	t.Parallel()
	s := onPlain(t, redistest.Start(t))
	q := ratelimit.Request{Rule: window("r", 1, ratelimit.FixedWindow), Key: "k"}
	_, err := s.limiter.Reserve(t.Context(), q)
	if e, is := errors.AsType[*ratelimit.RuleError](err); !is || e.Argument != "wait" {
		t.Errorf("got error %v", err)
	}
	s.admit(t, q)
}

// A block or a pause in force refuses at once, until its end. One that begins later does not move the place.
func TestReserveDuringABlockOrAPause(t *testing.T) {
	inRealTime(t, func(t *testing.T, s *subject) {
		l, ctx := s.limiter, t.Context()
		for i, stop := range []func(time.Duration, ...ratelimit.Request) error{
			func(d time.Duration, q ...ratelimit.Request) error { return l.Pause(ctx, d, q...) },
			func(d time.Duration, q ...ratelimit.Request) error { return l.Block(ctx, d, q...) },
		} {
			q := ratelimit.Request{Rule: window(fmt.Sprint("stopped", i), 1, ratelimit.LeakyBucket), Key: "k"}
			s.admit(t, q)
			before := s.place(t, q)
			if err := stop(2*time.Hour, q); err != nil {
				t.Fatal(err)
			}
			d, err := l.Reserve(ctx, q)
			if err != nil || d.Allowed || d.RetryAfter > 2*time.Hour || d.RetryAfter < 110*time.Minute || d.Source != []ratelimit.Source{ratelimit.SourcePause, ratelimit.SourceBlock}[i] {
				t.Errorf("stop %d: got %+v, error %v", i, d, err)
			}
			if err := errors.Join(l.Resume(ctx, q), l.Unblock(ctx, q)); err != nil {
				t.Fatal(err)
			}
			if after := s.place(t, q); after.At.Sub(before.At) != time.Hour {
				t.Errorf("stop %d: the next place is %v later", i, after.At.Sub(before.At))
			}
		}
		q := ratelimit.Request{Rule: window("blocks", 1, ratelimit.SlidingWindow), Key: "k"}
		q.Rule.Block = 3 * time.Hour
		s.admit(t, q)
		s.place(t, q) // it may wait, so the rule refuses nothing
		s.refuse(t, q)
		if d, err := l.Reserve(ctx, q); err != nil || d.Allowed || d.Source != ratelimit.SourceBlock || d.RetryAfter > 3*time.Hour || d.RetryAfter < 150*time.Minute {
			t.Errorf("in a block that a refusal began: got %+v, error %v", d, err)
		}
	})
}

// gate is a store that calls first once, before it decides.
type gate struct {
	ratelimit.Store
	first func()
}

func (g *gate) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	if first := g.first; first != nil {
		g.first = nil
		first()
	}
	return g.Store.Decide(ctx, call)
}

// Calls that a pause held go on one after the other when it is over. Until each of them has its place, no call of Reserve passes them.
func TestReserveComesAfterCallsThatHold(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		const waiters = 5
		store := &gate{Store: s.store}
		l, q := ratelimit.New(store), ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Second, Algorithm: ratelimit.LeakyBucket}, Key: "k"}
		if err := l.Pause(t.Context(), time.Minute, q); err != nil {
			t.Fatal(err)
		}
		start, places := time.Now(), make([]time.Time, waiters)
		var all sync.WaitGroup
		for i := range places {
			all.Go(func() {
				d, err := l.Wait(t.Context(), q)
				if places[i] = d.At; err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		asked := make(chan ratelimit.Decision, 1)
		store.first = func() {
			d, err := l.Reserve(t.Context(), q)
			if err != nil {
				t.Error(err)
			}
			asked <- d
		}
		d := <-asked // the pause is over, and the first call asks
		if passed := time.Since(start); d.Allowed || d.RetryAfter != time.Second || d.Source != ratelimit.SourcePause || passed < time.Minute {
			t.Errorf("after %v: got %+v", passed, d)
		}
		synctest.Wait()
		last, err := l.Reserve(t.Context(), q)
		if all.Wait(); err != nil || !last.Allowed {
			t.Fatalf("got %+v, error %v", last, err)
		}
		for i, at := range append(places, last.At)[1:] {
			if gap := at.Sub(places[i]); gap != time.Second {
				t.Errorf("place %d comes %v after the one before", i+1, gap)
			}
		}
	})
}

// While the store is away, failure policies decide as for Allow. Under FailLocal this process keeps the place, and takes it back.
func TestReserveDuringAnOutage(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		store, q := scripted(connect(t, server.Addr)), ratelimit.Request{Rule: window("r", 1, ratelimit.LeakyBucket), Key: "k"}
		server.Stop()
		limiter := func(p ratelimit.FailurePolicy) *ratelimit.Limiter {
			return ratelimit.New(store, ratelimit.WithFailurePolicy(p))
		}
		if _, err := limiter(ratelimit.FailClosed).Reserve(t.Context(), q); !isStoreError(err) {
			t.Errorf("FailClosed: got error %v", err)
		}
		for range 3 {
			if d, err := limiter(ratelimit.FailOpen).Reserve(t.Context(), q); err != nil || !d.Allowed || d.Delay != 0 || d.Source != ratelimit.SourcePolicy {
				t.Errorf("FailOpen: got %+v, error %v", d, err)
			}
		}
		s := &subject{limiter: limiter(ratelimit.FailLocal)}
		s.admit(t, q)
		first := s.place(t, q)
		for range 3 {
			d := s.place(t, q)
			if gap := d.At.Sub(first.At); gap != time.Hour || d.Source != ratelimit.SourcePolicy {
				t.Errorf("FailLocal: %v after the place before: %+v", gap, d)
			}
			if err := d.Refund(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func isStoreError(err error) bool {
	_, is := errors.AsType[*ratelimit.StoreError](err)
	return is
}

// Requests of one count add their costs, reports say what is left, and observers see an admitted call that waits as long as its Delay.
func TestReserveIsReportedAsAWait(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		var events []ratelimit.Event
		s.limiter = ratelimit.New(s.store, ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
			event := *e
			event.Rules = slices.Clone(e.Rules)
			events = append(events, event)
		}))
		hour := ratelimit.Request{Rule: window("hour", 3, ratelimit.SlidingWindow), Key: "k", Cost: 2}
		day := ratelimit.Request{Rule: ratelimit.Rule{Name: "day", Limit: 10, Per: 24 * time.Hour}, Key: "k"}
		s.admit(t, hour)
		ctx, report := ratelimit.WithReport(t.Context())
		d, err := s.limiter.Reserve(ctx, hour, day, ratelimit.Request{Rule: hour.Rule, Key: "k"})
		if err != nil || d.Delay != time.Hour || len(d.Quotas) != 2 || len(report.Quotas()) != 2 {
			t.Fatalf("got %+v, error %v, report %+v", d, err, report.Quotas())
		}
		for i, want := range []ratelimit.Quota{
			{Rule: "hour", Remaining: 0, Cost: 3, Reset: 2 * time.Hour, More: 2 * time.Hour}, {Rule: "day", Remaining: 9, Cost: 1, Reset: 25 * time.Hour, More: 25 * time.Hour},
		} {
			for _, q := range []ratelimit.Quota{d.Quotas[i], report.Quotas()[i]} {
				if q.Rule != want.Rule || q.Remaining != want.Remaining || q.Cost != want.Cost || q.Reset != want.Reset || q.More != want.More {
					t.Errorf("got %+v, want %+v", q, want)
				}
			}
		}
		if err := d.Refund(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(events) != 3 {
			t.Fatalf("got %+v", events)
		}
		reserved, refunded := events[1], events[2]
		if reserved.Kind != ratelimit.EventAdmitted || reserved.Waited != time.Hour || reserved.Took != 0 || !reserved.Rules[0].Waits || reserved.Rules[0].Cost != 3 {
			t.Errorf("got %+v", reserved)
		}
		if refunded.Kind != ratelimit.EventRefunded || refunded.Rules[0].CostBefore != 3 || refunded.Rules[1].CostBefore != 1 {
			t.Errorf("got %+v", refunded)
		}
	})
}
