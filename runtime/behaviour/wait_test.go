package behaviour_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

func window(name string, limit int64, algorithm ratelimit.Algorithm) ratelimit.Rule {
	return ratelimit.Rule{Name: name, Limit: limit, Per: time.Hour, Algorithm: algorithm}
}

// reserve starts a waiting call, and returns when the call has its place. leave cancels the call, which gives the place back.
func (s *subject) reserve(t *testing.T, requests ...ratelimit.Request) (leave func()) {
	t.Helper()
	return s.wait(t, true, requests...)
}

// wait starts a waiting call. keeps says whether it gets a place.
func (s *subject) wait(t *testing.T, keeps bool, requests ...ratelimit.Request) (leave func()) {
	t.Helper()
	store := &witness{Store: s.store, seen: make(chan seen, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := ratelimit.New(store).Wait(ctx, requests...)
		gone <- err
	}()
	var place seen
	select {
	case place = <-store.seen:
	case err := <-gone:
		t.Fatalf("got error %v; want a call that waits", err)
	}
	if place.err != nil || place.verdict.Admitted != keeps || place.verdict.At <= place.verdict.Now {
		t.Fatalf("got %+v; want a call that waits", place)
	}
	return func() {
		t.Helper()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) || errors.Is(err, ratelimit.ErrTooManyRequests) {
			t.Fatalf("got error %v; want a call that was given up", err)
		}
	}
}

// A place that is given back leaves everything as if it had not been reserved.
func TestCancelledWaiterLeavesNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		full := ratelimit.Request{Rule: window("full", 2, ratelimit.SlidingWindow), Key: "k", Cost: 2}
		s.admit(t, full)
		for range 3 {
			s.reserve(t, full)()
			s.refuse(t, ratelimit.Request{Rule: full.Rule, Key: "k"})
		}
		for _, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.Calendar} {
			q := ratelimit.Request{Rule: window("r", 3, algorithm), Key: "k", Cost: 3}
			if algorithm == ratelimit.Calendar {
				q.Rule.Per, q.Rule.Cron = 0, yearly
			}
			s.reserve(t, q, full)()
			s.admit(t, q)
			s.reserve(t, q, full)()
			s.refuse(t, q)
		}
	})
}

// A cancelled call returns the context's error, even if the server is too slow to give the place back meanwhile.
func TestCancelledWaiterOfASilentServer(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		client := connect(t, server.Addr)
		s := &subject{limiter: ratelimit.New(scripted(client, redisstore.WithTimeout(2*time.Second)))}
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour}, Key: "k"}
		s.admit(t, q)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		failed := make(chan error)
		go func() {
			_, err := s.limiter.Wait(ctx, q)
			failed <- err
		}()
		soon := func(d ratelimit.Decision) bool { return d.RetryAfter < time.Hour }
		redistest.Eventually(t, "the waiter has its place", func() bool { return !soon(s.refuse(t, q)) })
		if err := client.Ping(t.Context()).Err(); err != nil { // by now the server has also sent the waiter's reply
			t.Fatal(err)
		}
		server.Pause()
		cancel()
		err := <-failed
		server.Resume()
		if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
		redistest.Eventually(t, "the place is given back", func() bool { return soon(s.refuse(t, q)) })
	})
}

// A call that waits for its own budget also reserves a place in a budget that it shares with others, if that budget keeps places. The others pass
// as long as that place remains. A shared budget that keeps no place is not charged before the call is admitted.
func TestWaiterHoldsNobodyUp(t *testing.T) {
	shared := map[string]ratelimit.Rule{
		"sliding-window": {Limit: 5, Per: time.Hour},
		"fixed-window":   {Limit: 5, Per: time.Hour, Algorithm: ratelimit.FixedWindow},
		"calendar":       {Limit: 5, Cron: yearly},
		"token-bucket":   {Limit: 4, Per: time.Hour, Algorithm: ratelimit.TokenBucket},
		"prepaid":        {Limit: 3, Per: time.Hour, Algorithm: ratelimit.TokenBucket, Prepay: true}, // lets one more call pass
	}
	onEveryStore(t, func(t *testing.T, s *subject) {
		for name, rule := range shared {
			rule.Name = name
			all, own := ratelimit.Request{Rule: rule, Key: "all"}, ratelimit.Rule{Name: "own", Limit: 1, Per: 20 * time.Minute}
			call := func(who string) []ratelimit.Request {
				return []ratelimit.Request{{Rule: own, Key: name + " " + who}, all}
			}
			s.admit(t, call("ann")...)
			keeps := rule.Algorithm != ratelimit.TokenBucket
			leave := s.wait(t, keeps, call("ann")...)
			for _, who := range []string{"bob", "cid", "dan"} {
				s.admit(t, call(who)...)
			}
			s.refuse(t, call("eve")...)
			leave()
			if keeps {
				s.admit(t, call("eve")...)
			}
			s.refuse(t, all)
		}
	})
}

// A rule in shadow mode that would have refused has nothing to give back.
func TestCancelledWaiterAndAShadow(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		full := ratelimit.Request{Rule: window("full", 1, ratelimit.SlidingWindow), Key: "k"}
		s.admit(t, full)
		for _, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.SlidingCounter} {
			watched := ratelimit.Request{Rule: window("watched", 1, algorithm), Key: "k"}
			s.admit(t, watched)
			shadow := watched
			shadow.Rule.Mode = ratelimit.ModeShadow
			s.reserve(t, shadow, full)()
			s.refuse(t, watched)
		}
	})
}

// A call whose place would be after the context's deadline is refused at once.
func TestPlaceBehindTheDeadlineIsRefusedAtOnce(t *testing.T) {
	onEveryAlgorithmThatWaits(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		q := ratelimit.Request{Rule: rule, Key: "k", Cost: 3}
		s.admit(t, q)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := s.limiter.Wait(ctx, q)
		refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
		if !ok || refusal.RetryAfter <= 0 || len(refusal.Violations) != 1 || ctx.Err() != nil {
			t.Fatalf("Wait: got error %v", err)
		}
		first := s.peek(t, q)
		rule.Wait = 365 * 24 * time.Hour
		rules := wrap.NewRules("m", rule)
		err = wrap.Take(ctx, rules.On(s.limiter), rules, "k")
		if _, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); !ok || ctx.Err() != nil {
			t.Errorf("Take: got error %v", err)
		}
		if again := s.peek(t, q); !again.At.Add(again.RetryAfter).Equal(first.At.Add(first.RetryAfter)) {
			t.Errorf("something was reserved: %+v, then %+v", first, again)
		}
	})
}

// Waiting calls need at most as many permits as the queue allows.
func TestQueueBoundsTheDelay(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		rules := wrap.NewRules("m", ratelimit.Rule{
			Name: "r", Limit: 1, Per: time.Second, Algorithm: ratelimit.LeakyBucket, Wait: time.Hour, Queue: 3,
		})
		const refused = -1
		delays := make([]time.Duration, 6)
		var all sync.WaitGroup
		start := time.Now()
		for i := range delays {
			all.Go(func() {
				err := wrap.Take(context.Background(), rules.On(s.limiter), rules, "k")
				if delays[i] = time.Since(start); err != nil {
					delays[i] = refused
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, refused, refused}; !slices.Equal(delays, want) {
			t.Errorf("delays are %v, want %v", delays, want)
		}
	})
}

// No call waits for a sliding counter, or for a rule with Distinct: a member that is known now may no longer be known later.
func TestRulesThatNoCallWaitsFor(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		full := ratelimit.Request{Rule: window("full", 1, ratelimit.SlidingWindow), Key: "k"}
		s.admit(t, full)
		distinct := ratelimit.Request{Rule: ratelimit.Rule{Name: "d", Limit: 1, Per: time.Hour, Distinct: "{who}"}, Key: "k", Member: "a"}
		counter := ratelimit.Request{Rule: window("counter", 1, ratelimit.SlidingCounter), Key: "k"}
		for _, q := range []ratelimit.Request{distinct, counter} {
			_, err := s.limiter.Wait(context.Background(), q, full)
			if e, ok := errors.AsType[*ratelimit.RuleError](err); !ok || e.Argument != "wait" {
				t.Errorf("got error %v", err)
			}
			s.admit(t, q) // nothing was charged
		}
	})
}

// The longest warm-up is exact, although its products exceed 64 bits.
func TestLongWarmup(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := ratelimit.Rule{Name: "r", Per: 24 * time.Hour, Algorithm: ratelimit.TokenBucket, Warmup: 24*time.Hour - 3*time.Microsecond}
		for _, cost := range []int64{1, 2, 3, 5, 1000} {
			rule.Limit = max(7, 2*cost)
			w, q := newModel(), ratelimit.Request{Rule: rule, Key: time.Duration(cost).String(), Cost: cost}
			first := s.admit(t, q)
			w.allow(first.At.UnixMicro(), asksOf([]ratelimit.Request{q}, 0))
			d := s.refuse(t, q)
			if want := w.peek(d.At.UnixMicro(), asksOf([]ratelimit.Request{q}, 0)); d.RetryAfter != micros(want.retryAfter) {
				t.Errorf("after %d permits: retry after %v, want %v", cost, d.RetryAfter, micros(want.retryAfter))
			}
		}
	})
}

// A call is never admitted if its debt would last longer than a day, unless it costs one permit.
func TestLongestDebt(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for _, rule := range []ratelimit.Rule{
			{Name: "prepaid", Limit: 1, Per: 3660 * 24 * time.Hour, Algorithm: ratelimit.TokenBucket, Prepay: true},
			{Name: "warm", Limit: 1, Per: 3660 * 24 * time.Hour, Algorithm: ratelimit.TokenBucket, Warmup: time.Second},
		} {
			q := ratelimit.Request{Rule: rule, Key: "k", Cost: 2}
			_, err := s.limiter.Allow(context.Background(), q)
			if e, never := errors.AsType[*ratelimit.NeverAdmissibleError](err); !never || e.Limit != 1 {
				t.Errorf("%s: got error %v", rule.Name, err)
			}
			q.Cost = 1
			if rule.Prepay {
				s.admit(t, q) // takes the stored permit
			}
			s.admit(t, q)
			if d := s.refuse(t, q); d.RetryAfter < 3600*24*time.Hour || d.RetryAfter > rule.Per+rule.Warmup {
				t.Errorf("%s: retry after %v", rule.Name, d.RetryAfter)
			}
		}
	})
}

// A place exactly at the deadline of a context is not too late.
func TestPlaceAtTheDeadline(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		waitUntilTheDeadline(t, s, func(ctx context.Context) context.Context { return ctx })
	})
}

// over is a context that has ended whenever it is asked. Only a store in memory can be called with it: others also ask it before the call sleeps.
type over struct{ context.Context }

func (c over) Done() <-chan struct{} {
	<-c.Context.Done()
	return c.Context.Done()
}

// A place at the deadline is not too late, even if the call first notices that the context has ended.
func TestPlaceAtADeadlineThatIsNoticedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &subject{limiter: ratelimit.New(memstore.New())}
		waitUntilTheDeadline(t, s, func(ctx context.Context) context.Context { return over{ctx} })
	})
}

func waitUntilTheDeadline(t *testing.T, s *subject, noticed func(context.Context) context.Context) {
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Millisecond, Algorithm: ratelimit.LeakyBucket}, Key: "k"}
	for range 100 {
		s.admit(t, q)
		ctx, cancel := context.WithTimeout(context.Background(), q.Rule.Per)
		if d, err := s.limiter.Wait(noticed(ctx), q); err != nil || !d.Allowed {
			t.Fatalf("got %+v, error %v", d, err)
		}
		cancel()
		time.Sleep(time.Second)
	}
}

// More calls wait for a fixed window than it opens windows ahead. All of them are admitted, never two in one window.
func TestMoreWaitersThanWindowsAhead(t *testing.T) {
	const waiters, per = 100, 10 * time.Millisecond
	inVirtualTime(t, func(t *testing.T, s *subject) {
		rule := ratelimit.Rule{Name: "r", Limit: 1, Per: per, Algorithm: ratelimit.FixedWindow}
		places, all := make([]int64, waiters), sync.WaitGroup{}
		for i := range places {
			all.Go(func() {
				d, err := s.limiter.Wait(t.Context(), ratelimit.Request{Rule: rule, Key: "k"})
				if err != nil {
					t.Error(err)
				}
				places[i] = d.At.UnixMicro()
			})
		}
		all.Wait()
		slices.Sort(places)
		for i, at := range places[1:] {
			if at-places[i] < per.Microseconds() {
				t.Errorf("two calls are admitted within %d us", at-places[i])
			}
		}
	})
}
