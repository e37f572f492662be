package behaviour_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

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
					places[i] = d.At
					if err != nil || !d.Allowed || d.Delay != d.At.Sub(start) || len(d.Violations) > 0 || d.RetryAfter != 0 {
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

// Calls of Reserve, Wait and Allow of two programs come at the same time, and some places are given back before their time. No permit is given twice.
func TestPlacesAreGivenOnce(t *testing.T) {
	inRealTime(t, func(t *testing.T, s *subject) {
		const goroutines, calls = 24, 12
		limiters := []*ratelimit.Limiter{s.limiter, s.another()}
		for _, rule := range queued {
			if rule.Algorithm == ratelimit.FixedWindow {
				continue // the places do not show windows that were closed
			}
			var all sync.WaitGroup
			var mu sync.Mutex
			var places []int64
			for n := range goroutines {
				all.Go(func() {
					random, l := rand.New(rand.NewPCG(uint64(n), 1)), limiters[n%len(limiters)]
					for range calls {
						ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
						call := [](func(context.Context, ...ratelimit.Request) (ratelimit.Decision, error)){l.Reserve, l.Reserve, l.Wait, l.Allow}[random.IntN(4)]
						d, err := call(ctx, ratelimit.Request{Rule: rule, Key: "k"})
						cancel()
						if errors.Is(err, ratelimit.ErrTooManyRequests) || err == nil && !d.Allowed {
							continue
						}
						isBack := err == nil && d.Delay > 100*time.Millisecond && random.IntN(2) == 0
						if isBack {
							err = d.Refund(t.Context())
						}
						mu.Lock()
						if !isBack {
							places = append(places, d.At.UnixMicro())
						}
						if mu.Unlock(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			if all.Wait(); len(places) < 50 {
				t.Errorf("%s: only %d were admitted", rule.Name, len(places))
			}
			requireLimit(t, rule, places)
		}
	})
}

// Places that are given back before their time leave everything as if they had not been taken. Each is given back once.
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
			{Rule: "hour", Remaining: 0, Cost: 3, Reset: 2 * time.Hour, More: 2 * time.Hour},
			{Rule: "day", Remaining: 9, Cost: 1, Reset: 25 * time.Hour, More: 25 * time.Hour},
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
		if reserved.Kind != ratelimit.EventAdmitted || reserved.Waited != time.Hour || reserved.Took != 0 {
			t.Errorf("got %+v", reserved)
		}
		if of := reserved.Rules[0]; !of.Waits || of.Cost != 3 {
			t.Errorf("got %+v", reserved)
		}
		if refunded.Kind != ratelimit.EventRefunded || refunded.Rules[0].CostBefore != 3 || refunded.Rules[1].CostBefore != 1 {
			t.Errorf("got %+v", refunded)
		}
	})
}
