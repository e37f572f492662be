package redisstore

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Facts are forgotten once a second. A fact for which all others were forgotten early starts no second timer.
func TestFactsHaveOneTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := &engine.Rule{Name: "r", Kind: engine.SlidingWindow}
		call := func(i int) *engine.Call {
			return &engine.Call{Claims: []engine.Claim{{Rule: rule, Subject: strconv.Itoa(i), Limit: 1}}}
		}
		var k facts
		swept := func() time.Duration {
			synctest.Wait()
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.swept
		}
		for i := range maxFacts {
			k.add(call(i))
		}
		time.Sleep(sweepEvery / 2)
		k.swept = clock() - minSweep
		last := k.add(call(maxFacts))
		if n := k.size.Load(); last == nil || n != 1 {
			t.Fatalf("%d facts are left, the last one is %v", n, last)
		}
		last.refusal.Store(&refusal{useless: clock() + time.Hour})
		time.Sleep(sweepEvery / 2)
		first := swept()
		time.Sleep(sweepEvery * 3 / 4)
		if again := swept(); again != first {
			t.Errorf("facts were forgotten again after %v", again-first)
		}
		time.Sleep(sweepEvery / 4)
		if next := swept(); next != first+sweepEvery {
			t.Errorf("facts were forgotten again after %v, want %v", next-first, sweepEvery)
		}
	})
}
