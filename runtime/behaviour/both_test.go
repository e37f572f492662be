package behaviour_test

import (
	"context"
	"errors"
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

// When the fleet refuses after this instance has admitted, this instance keeps nothing of the call, nor a window that it opened.
func TestRefusalOfTheFleetAfterThisInstance(t *testing.T) {
	for name, store := range map[string]ratelimit.Store{
		"memory": memstore.New(), "redis": redisstore.New(connect(t, redistest.Start(t).Addr)),
	} {
		s := &subject{limiter: ratelimit.New(store)}
		here, fleet := onBoth("r", 1, time.Hour)
		here.Rule.Scope, fleet.Rule.Scope = ratelimit.ScopeInstance, ratelimit.ScopeFleet
		s.admit(t, fleet)
		refused := s.refuse(t, fleet, here)
		time.Sleep(2 * time.Millisecond)
		first := s.admit(t, here)
		full := s.refuse(t, here)
		if end := full.At.Add(full.RetryAfter); end.Sub(first.At) != time.Hour || !first.At.After(refused.At) {
			t.Errorf("%s: a window of an hour ends %v after its first call", name, end.Sub(first.At))
		}
	}
}

// A call under rules of both scopes sleeps until both admit it, and is refused if that is too late.
func TestWaitForBothScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := ratelimit.New(memstore.New()), time.Now()
		fleet, here := onBoth("r", 1, time.Second)
		here.Rule.Per = 3 * time.Second
		for _, want := range []time.Duration{0, 3 * time.Second, 6 * time.Second} {
			if d, err := l.Wait(t.Context(), fleet, here); err != nil || d.At.Sub(start) != want || time.Since(start) != want {
				t.Errorf("admitted at %s, %+v, error %v; want %s", time.Since(start), d, err, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := l.Wait(ctx, fleet, here)
		if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); !ok || refusal.RetryAfter != 3*time.Second {
			t.Errorf("got error %v", err)
		}
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("a refusal took until %s", took)
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
