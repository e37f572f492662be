package behaviour_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// after is a store that does something, once, when it has made a decision.
type after struct {
	ratelimit.Store
	do func()
}

func (s *after) Decide(ctx context.Context, call *decide.Call) (decide.Verdict, error) {
	v, err := s.Store.Decide(ctx, call)
	if do := s.do; do != nil && !call.Refused {
		s.do = nil
		do()
	}
	return v, err
}

// A ledger is a store that enters what calls were charged to. A call that is late is admitted after its places, and closer to
// others than those are.
type ledger struct{ ratelimit.Store }

// An entry is of the last decision of a call.
type entry struct {
	from    int64 // what was asked for
	verdict decide.Verdict
	charged []int64 // where each claim counts
}

type entryKey struct{}

// entered returns a context for a call, and where the ledger enters it.
func entered() (context.Context, *entry) {
	e := new(entry)
	return context.WithValue(context.Background(), entryKey{}, e), e
}

func (s ledger) Decide(ctx context.Context, call *decide.Call) (decide.Verdict, error) {
	v, err := s.Store.Decide(ctx, call)
	e := entry{from: call.From, verdict: v}
	for _, c := range call.Claims {
		e.charged = append(e.charged, c.At)
	}
	*ctx.Value(entryKey{}).(*entry) = e
	return v, err
}

func onBoth(name string, limit int64, per time.Duration) (fleet, here ratelimit.Request) {
	rule := ratelimit.Rule{Name: name, Limit: limit, Per: per, Algorithm: ratelimit.FixedWindow}
	fleet = ratelimit.Request{Rule: rule, Key: "k"}
	rule.Name, rule.Algorithm, rule.Scope = name+"-here", ratelimit.SlidingWindow, ratelimit.ScopeInstance
	return fleet, ratelimit.Request{Rule: rule, Key: "k"}
}

// When this instance refuses after the fleet has admitted, the fleet keeps nothing of the call, nor a window that it opened.
func TestRefusalOfThisInstanceAfterTheFleet(t *testing.T) {
	for name, store := range map[string]ratelimit.Store{
		"memory": memstore.New(), "redis": redisstore.New(connect(t, redistest.Start(t).Addr)),
	} {
		between := &after{Store: store}
		s := &subject{limiter: ratelimit.New(between)}
		fleet, here := onBoth("r", 1, time.Hour)
		between.do = func() { s.admit(t, here) }
		refused := s.refuse(t, fleet, here)
		s.pass = time.Sleep
		s.pass(2 * time.Millisecond)
		first := s.admit(t, fleet)
		full := s.refuse(t, fleet)
		if end := full.At.Add(full.RetryAfter); end.Sub(first.At) != time.Hour || !first.At.After(refused.At) {
			t.Errorf("%s: a window of an hour ends %v after its first call", name, end.Sub(first.At))
		}
	}
}

// Where others take the place meanwhile that this instance said, the fleet's place moves as well.
func TestBothScopesMoveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		between := &after{Store: memstore.New()}
		l := ratelimit.New(between)
		rule := ratelimit.Rule{Name: "fleet", Limit: 1, Per: time.Second}
		fleet := ratelimit.Request{Rule: rule}
		rule.Name, rule.Scope = "here", ratelimit.ScopeInstance
		here := ratelimit.Request{Rule: rule}
		var mu sync.Mutex
		var places []time.Duration
		start := time.Now()
		wait := func(requests ...ratelimit.Request) {
			d, err := l.Wait(context.Background(), requests...)
			if err != nil || !d.Allowed {
				t.Errorf("got %+v, error %v", d, err)
			}
			mu.Lock()
			defer mu.Unlock()
			places = append(places, d.At.Sub(start))
		}
		var all sync.WaitGroup
		wait(fleet, here)
		between.do = func() {
			all.Go(func() { wait(here) })
			time.Sleep(time.Millisecond)
		}
		all.Go(func() { wait(fleet, here) })
		time.Sleep(10 * time.Millisecond)
		all.Go(func() { wait(fleet) })
		all.Wait()
		if want := []time.Duration{0, 1 * time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(places, want) {
			t.Errorf("places %v, want %v", places, want)
		}
	})
}

// Goroutines of two limiters on one store keep to the limits of both and of each.
func TestBothScopesUnderLoad(t *testing.T) {
	store := redisstore.New(connect(t, redistest.Start(t).Addr))
	rule := ratelimit.Rule{Name: "fleet", Limit: 30, Per: 100 * time.Millisecond, Algorithm: ratelimit.LeakyBucket}
	fleet := ratelimit.Request{Rule: rule, Key: "k"}
	rule.Name, rule.Limit, rule.Scope = "here", 20, ratelimit.ScopeInstance
	here := ratelimit.Request{Rule: rule, Key: "k"}
	var mu sync.Mutex
	var all sync.WaitGroup
	var places []int64 // of the fleet
	for range 2 {
		l := ratelimit.New(ledger{store})
		var own []int64
		var ours sync.WaitGroup
		for range 30 {
			ours.Go(func() {
				ctx, e := entered()
				d, err := l.Wait(ctx, fleet, here)
				if err != nil || !d.Allowed {
					t.Errorf("got %+v, error %v", d, err)
				}
				woken, place := time.Now().UnixMicro(), d.At.UnixMicro()
				if e.from > 0 && e.verdict.At <= e.verdict.Now {
					place = e.from // here; the fleet was asked for that, and answered when it was over
				}
				if first := max(place, e.charged[0]); woken < first {
					t.Errorf("went on %v before its place", micros(first-woken))
				}
				mu.Lock()
				defer mu.Unlock()
				places, own = append(places, e.charged[0]), append(own, place)
			})
		}
		all.Go(func() {
			ours.Wait()
			mu.Lock()
			defer mu.Unlock()
			requireLimit(t, here.Rule, own)
		})
	}
	all.Wait()
	requireLimit(t, fleet.Rule, places)
}
