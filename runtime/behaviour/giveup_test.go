package behaviour_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A third of the waiting calls give up at random while others keep coming. The next callers get their places. Never more than the limit is used,
// and at least 95 % of it.
func TestPlacesThatAreGivenUpAreUsed(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) { giveUp(t, s.limiter, 4*time.Second, 0.95) })
}

// giveUp makes twice as many calls as the queued rules admit, and checks the places of the calls that did not give up.
func giveUp(t *testing.T, l *ratelimit.Limiter, length time.Duration, want float64) {
	const wait = 200 * time.Millisecond
	var all sync.WaitGroup
	var mu sync.Mutex
	places := make(map[string][]int64)
	call := func(rule ratelimit.Rule, patience time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		if patience > 0 {
			defer time.AfterFunc(patience, leave).Stop()
		}
		if d, err := l.Wait(ctx, ratelimit.Request{Rule: rule, Key: "k"}); err == nil {
			mu.Lock()
			defer mu.Unlock()
			places[rule.Name] = append(places[rule.Name], d.At.UnixMicro())
		}
	}
	for start := time.Now(); time.Since(start) < length; time.Sleep(5 * time.Millisecond) {
		for _, rule := range queued {
			for range 2 {
				patience := time.Duration(0)
				if rand.IntN(3) == 0 {
					patience = rand.N(wait)
				}
				all.Go(func() { call(rule, patience) })
			}
		}
	}
	stop := time.Now().UnixMicro() // no calls come after this to use free places
	all.Wait()
	for name, rule := range queued {
		at := places[name]
		slices.Sort(at)
		if rule.Algorithm != ratelimit.FixedWindow { // the log does not show windows that were opened by calls that gave up
			requireLimit(t, rule, at)
		}
		end, _ := slices.BinarySearch(at, stop)
		if at = at[:end]; len(at) == 0 {
			t.Errorf("%s: no call was admitted", name)
			continue
		}
		span := micros(stop - at[0])
		given := float64(rule.Limit) * float64(span) / float64(rule.Per)
		t.Logf("%s: %d of %.0f permits used", name, len(at), given)
		if float64(len(at)) < want*given {
			t.Errorf("%s: %.3f of the limit is used", name, float64(len(at))/given)
		}
	}
}
