package behaviour_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func onBoth(name string, limit int64, per time.Duration) (fleet, here ratelimit.Request) {
	rule := ratelimit.Rule{Name: name, Limit: limit, Per: per, Algorithm: ratelimit.FixedWindow}
	fleet = ratelimit.Request{Rule: rule, Key: "k"}
	rule.Name, rule.Algorithm, rule.Scope = name+"-here", ratelimit.SlidingWindow, ratelimit.ScopeInstance
	return fleet, ratelimit.Request{Rule: rule, Key: "k"}
}

// If the fleet's rules refuse a call after this instance's rules admitted it, this instance keeps no charge, and no window that the call opened.
func TestRefusalOfTheFleetAfterThisInstance(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		here, fleet := onBoth("r", 1, time.Hour)
		here.Rule.Scope, fleet.Rule.Scope, fleet.Rule.Algorithm = ratelimit.ScopeInstance, ratelimit.ScopeFleet, s.window
		s.admit(t, fleet)
		refused := s.refuse(t, fleet, here)
		s.pass(2 * time.Millisecond)
		first := s.admit(t, here)
		full := s.refuse(t, here)
		if end := full.At.Add(full.RetryAfter); end.Sub(first.At) != time.Hour || !first.At.After(refused.At) {
			t.Errorf("a window of an hour ends %v after its first call", end.Sub(first.At))
		}
	})
}

// A call under rules of both scopes sleeps until both admit it, and is refused if that is too late.
func TestWaitForBothScopes(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		l, start := s.limiter, time.Now()
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
	inVirtualTime(t, func(t *testing.T, s *subject) {
		rule := ratelimit.Rule{Name: "fleet", Limit: 30, Per: 100 * time.Millisecond, Algorithm: ratelimit.LeakyBucket}
		fleet := ratelimit.Request{Rule: rule, Key: "k"}
		rule.Name, rule.Limit, rule.Scope = "here", 20, ratelimit.ScopeInstance
		here := ratelimit.Request{Rule: rule, Key: "k"}
		var all sync.WaitGroup
		var mu sync.Mutex
		admitted := make([][]int64, 2)
		for i, l := range []*ratelimit.Limiter{s.limiter, s.another()} {
			for range 30 {
				all.Go(func() {
					d, err := l.Wait(t.Context(), fleet, here)
					if err != nil || !d.Allowed || !d.At.Equal(time.Now()) {
						t.Errorf("got %+v, error %v", d, err)
					}
					mu.Lock()
					defer mu.Unlock()
					admitted[i] = append(admitted[i], d.At.UnixMicro())
				})
			}
		}
		all.Wait()
		requireLimit(t, here.Rule, admitted[0])
		requireLimit(t, here.Rule, admitted[1])
		requireLimit(t, fleet.Rule, slices.Concat(admitted...))
	})
}

// A block begins when the call is finally refused, not while the call still has time to ask again.
func TestBlockUnderBothScopes(t *testing.T) {
	const block = time.Hour
	inVirtualTime(t, func(t *testing.T, s *subject) {
		for _, blocking := range []string{"fleet", "here", "both"} {
			fleet, here := onBoth(blocking, 1, 50*time.Millisecond)
			if blocking != "here" {
				fleet.Rule.Block = block
			}
			if blocking != "fleet" {
				here.Rule.Block = block
			}
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				_, err := s.limiter.Wait(ctx, fleet, here)
				if cancel(); err != nil {
					t.Fatalf("a block of %s: a call that has time is answered by %v", blocking, err)
				}
			}
			fleet.Rule.Per, here.Rule.Per = time.Minute, time.Minute
			s.admit(t, fleet, here)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			_, err := s.limiter.Wait(ctx, fleet, here)
			cancel()
			if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); !ok || refusal.RetryAfter != block {
				t.Errorf("a block of %s: a call that has too little time is answered by %v", blocking, err)
			}
			if d := s.peek(t, fleet, here); d.Allowed || d.RetryAfter <= time.Minute {
				t.Errorf("a block of %s: then %+v", blocking, d)
			}
		}
	})
}
