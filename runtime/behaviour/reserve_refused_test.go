package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

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
			want     string // the rule that refuses
			after    time.Duration
		}{
			{"the queue is full", time.Hour, 3, []ratelimit.Request{{Rule: leaky, Key: "k"}}, "leaky", time.Minute},
			{
				"the deadline is too near", 30 * time.Second, 1, []ratelimit.Request{{Rule: leaky, Key: "deadline"}},
				"leaky", 30 * time.Second,
			},
			{
				"too many windows are ahead", forever, 65, []ratelimit.Request{{Rule: fixed, Key: "k"}},
				"fixed", 65 * time.Minute,
			},
			{
				"a bucket keeps no place for the time of another rule", 24 * time.Hour, 1,
				[]ratelimit.Request{{Rule: own, Key: "k", Cost: 2}, {Rule: shared, Key: "k", Cost: 2}},
				"own", time.Hour,
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
			if err != nil || d.Allowed || d.Delay != 0 || d.RetryAfter != test.after || len(d.Violations) != 1 || d.Violations[0].Rule != test.want {
				t.Errorf("%s: got %+v, error %v", test.what, d, err)
			}
			if !d.At.Equal(start) || !time.Now().Equal(start) {
				t.Errorf("%s: decided at %v, answered at %v; asked at %v", test.what, d.At, time.Now(), start)
			}
			if again := s.peek(t, test.requests...); fmt.Sprint(again) != fmt.Sprint(first) {
				t.Errorf("%s: something was charged: %+v, then %+v", test.what, first, again)
			}
			time.Sleep(d.RetryAfter - time.Microsecond)
			mayPass := test.within == forever // a place comes when the first of the windows has ended
			if early, err := reserve(); err != nil || !mayPass && (early.Allowed || early.RetryAfter != time.Microsecond) {
				t.Errorf("%s: asked too early: got %+v, error %v", test.what, early, err)
			}
			time.Sleep(time.Microsecond)
			if d, err := reserve(); err != nil || !d.Allowed {
				t.Errorf("%s: asked again: got %+v, error %v", test.what, d, err)
			}
		}
	})
}

// With 4,096 entries in a sliding window of amounts, the next place is had when one of them leaves, though nothing is charged until then. RetryAfter
// is until the call passes at once.
func TestPlaceWhenAnEntryLeaves(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		s.limiter = ratelimit.New(bare{s.store})
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "amounts", Limit: 1, Per: time.Second, Amounts: true}, Key: "k"}
		const entries, share = 4096, time.Second/2048 + time.Microsecond // an entry may be recorded so much later
		var last time.Time
		for range entries {
			last = s.place(t, q).At
		}
		refused := func() {
			t.Helper()
			d, err := s.limiter.Reserve(t.Context(), q)
			if late := d.RetryAfter - time.Until(last) - time.Second; err != nil || d.Allowed || late < 0 || late > share {
				t.Fatalf("got %+v, error %v; want a RetryAfter of %v", d, err, time.Until(last)+time.Second)
			}
		}
		for range 3 {
			refused()
			time.Sleep(time.Second - time.Microsecond)
			refused()
			time.Sleep(time.Microsecond)
			at := s.place(t, q).At
			if gap := at.Sub(last); gap < time.Second || gap > time.Second+share {
				t.Errorf("the next place is %v after the last one", gap)
			}
			last = at
		}
		time.Sleep(2 * time.Second) // two entries have left
		for range 2 {
			last = s.place(t, q).At
		}
		refused()
	})
}

// A rule may admit a call now, and refuse it at the time at which the other rules admit it. Its refusal says that fewer permits are left than the call
// costs.
func TestNoPlaceWhenTheOthersHaveOne(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		s.limiter = ratelimit.New(bare{s.store})
		fixed := ratelimit.Request{Rule: window("fixed", 2, ratelimit.FixedWindow), Key: "k", Cost: 2}
		sliding := ratelimit.Request{Rule: window("sliding", 1, ratelimit.SlidingWindow), Key: "k"}
		sliding.Rule.Per = 40 * time.Minute
		s.admit(t, sliding)
		time.Sleep(39 * time.Minute)
		s.place(t, fixed, sliding) // in a minute, in a window that ends an hour later
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Minute)
		defer cancel()
		d, err := s.limiter.Reserve(ctx, fixed, sliding)
		if err != nil || d.Allowed {
			t.Fatalf("got %+v, error %v", d, err)
		}
		_, err = s.limiter.Wait(ctx, fixed, sliding)
		refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
		if !ok {
			t.Fatal(err)
		}
		for _, all := range [][]ratelimit.Violation{d.Violations, refusal.Violations} {
			if v := all[0]; len(all) != 1 || v.Rule != "fixed" || v.Remaining != 1 || v.More != v.RetryAfter || v.RetryAfter == 0 {
				t.Errorf("got %+v", all)
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
		members := ratelimit.Request{Rule: ratelimit.Rule{Name: "d", Limit: 1, Per: time.Hour, Distinct: "{who}"}, Key: "k", Member: "a"}
		for text, requests := range map[string][]ratelimit.Request{
			`rule "c": reserve: does not go with concurrency`:         {{Rule: ratelimit.Rule{Name: "c", Limit: 1, Algorithm: ratelimit.Concurrency}}, ok},
			`rule "d": reserve: does not go with distinct=`:           {ok, members},
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
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr}, ReadTimeout: patience,
	})
	t.Cleanup(func() { _ = ring.Close() })
	for name, client := range map[string]redis.UniversalClient{
		"cluster": connectCluster(t, servers), "ring": ring, "hidden": struct{ redis.UniversalClient }{connectCluster(t, servers)},
	} {
		s := &subject{limiter: ratelimit.New(scripted(client), ratelimit.WithPrefix(name), ratelimit.WithFailurePolicy(ratelimit.FailOpen))}
		rule := ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour}
		var requests []ratelimit.Request
		for i := range 8 {
			requests = append(requests, ratelimit.Request{Rule: rule, Key: fmt.Sprint("subject", i)})
		}
		d, err := s.limiter.Reserve(t.Context(), requests...)
		if e, is := errors.AsType[*ratelimit.RuleError](err); !is || e.Argument != "reserve" || !strings.Contains(e.Reason, "expected one key") {
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

// Without scripts no place is kept on the server. A rule of instance scope keeps places in this process.
func TestReserveWithoutScripts(t *testing.T) {
	t.Parallel()
	s := onPlain(t, redistest.Start(t))
	q := ratelimit.Request{Rule: window("r", 1, ratelimit.FixedWindow), Key: "k"}
	_, err := s.limiter.Reserve(t.Context(), q)
	if e, is := errors.AsType[*ratelimit.RuleError](err); !is || e.Argument != "wait" {
		t.Errorf("got error %v", err)
	}
	s.admit(t, q)
	q.Rule.Scope = ratelimit.ScopeInstance
	first, second := s.place(t, q), s.place(t, q)
	if second.At.Sub(first.At) != time.Hour {
		t.Errorf("places at %v and %v", first.At, second.At)
	}
}

// A block or a pause in force refuses at once, until its end. One that begins later does not move the place.
func TestReserveDuringABlockOrAPause(t *testing.T) {
	inRealTime(t, func(t *testing.T, s *subject) {
		l, ctx := s.limiter, t.Context()
		requireStop := func(what ratelimit.Source, least, most time.Duration, q ratelimit.Request) {
			t.Helper()
			if d, err := l.Reserve(ctx, q); err != nil || d.Allowed || d.RetryAfter < least || d.RetryAfter > most || d.Source != what {
				t.Errorf("in a %s: got %+v, error %v", what, d, err)
			}
		}
		for source, stop := range map[ratelimit.Source]func(context.Context, time.Duration, ...ratelimit.Request) error{
			ratelimit.SourcePause: l.Pause, ratelimit.SourceBlock: l.Block,
		} {
			q := ratelimit.Request{Rule: window(source.String(), 1, ratelimit.LeakyBucket), Key: "k"}
			s.admit(t, q)
			before := s.place(t, q)
			if err := stop(ctx, 2*time.Hour, q); err != nil {
				t.Fatal(err)
			}
			requireStop(source, 110*time.Minute, 2*time.Hour, q)
			if err := errors.Join(l.Resume(ctx, q), l.Unblock(ctx, q)); err != nil {
				t.Fatal(err)
			}
			if after := s.place(t, q); after.At.Sub(before.At) != time.Hour {
				t.Errorf("after a %s the next place is %v later", source, after.At.Sub(before.At))
			}
		}
		q := ratelimit.Request{Rule: window("blocks", 1, ratelimit.SlidingWindow), Key: "k"}
		q.Rule.Block = 3 * time.Hour
		s.admit(t, q)
		s.place(t, q) // it may wait, so the rule refuses nothing
		s.refuse(t, q)
		requireStop(ratelimit.SourceBlock, 150*time.Minute, 3*time.Hour, q)
	})
}

// gate is a store that calls first once, before it decides.
type gate struct {
	ratelimit.Store
	first atomic.Pointer[func()]
}

func (g *gate) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	if first := g.first.Swap(nil); first != nil {
		(*first)()
	}
	return g.Store.Decide(ctx, call)
}

// Calls that a pause held go on one after the other when it is over. Until each of them has its place, no call of Reserve passes them.
func TestReserveComesAfterCallsThatHold(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		const waiters = 5
		store := &gate{Store: s.store}
		rule := ratelimit.Rule{Name: "r", Limit: 1, Per: time.Second, Algorithm: ratelimit.LeakyBucket}
		l, q := ratelimit.New(store), ratelimit.Request{Rule: rule, Key: "k"}
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
		first := func() {
			d, err := l.Reserve(t.Context(), q)
			if err != nil {
				t.Error(err)
			}
			asked <- d
		}
		store.first.Store(&first)
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
