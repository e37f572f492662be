package behaviour_test

import (
	"context"
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A guavaStep idles, or takes permits. Each call waits until the debt of the call before is paid.
type guavaStep struct {
	idle  time.Duration
	rate  int64 // the new rate in permits a second, if it changes
	cost  int64
	waits []time.Duration
}

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// coldStart has the waits after a cold start, at 2 permits a second with a warm-up of 4 s.
var coldStart = []time.Duration{0, ms(1375), ms(1125), ms(875), ms(625), ms(500), ms(500), ms(500)}

// guava has the waits that Guava's RateLimiterTest expects of SmoothBursty and SmoothWarmingUp, without rounding to two digits. A SmoothBursty
// begins empty and a bucket begins full, so the first step takes the stored permits.
var guava = map[string]struct {
	rate   int64
	warmup time.Duration
	steps  []guavaStep
}{
	"simple":                     {5, 0, []guavaStep{{cost: 1, waits: []time.Duration{0, ms(200), ms(200)}}}},
	"simple with wait":           {5, 0, []guavaStep{{cost: 1, waits: []time.Duration{0}}, {idle: ms(200)}, {cost: 1, waits: []time.Duration{0, ms(200)}}}},
	"earliest is in the past":    {5, 0, []guavaStep{{cost: 1, waits: []time.Duration{0}}, {idle: ms(400)}, {cost: 1, waits: []time.Duration{0, 0, ms(200)}}}},
	"burst of a second":          {5, 0, []guavaStep{{idle: ms(2000)}, {cost: 1, waits: []time.Duration{0, 0}}, {cost: 3, waits: []time.Duration{0}}, {cost: 1, waits: []time.Duration{0, ms(200)}}}},
	"no burst of more than that": {5, 0, []guavaStep{{idle: time.Hour}, {cost: 6, waits: []time.Duration{0}}, {cost: 1, waits: []time.Duration{ms(200)}}}},
	"weights": {1, 0, []guavaStep{
		{cost: 1, waits: []time.Duration{0, ms(1000)}}, {cost: 2, waits: []time.Duration{ms(1000)}}, {cost: 4, waits: []time.Duration{ms(2000)}},
		{cost: 8, waits: []time.Duration{ms(4000)}}, {cost: 1, waits: []time.Duration{ms(8000)}},
	}},
	"bursty and update": {1, 0, []guavaStep{
		{cost: 1, waits: []time.Duration{0, ms(1000)}}, {rate: 2, cost: 1, waits: []time.Duration{ms(1000)}}, {cost: 2, waits: []time.Duration{ms(500)}},
		{cost: 4, waits: []time.Duration{ms(1000)}}, {cost: 1, waits: []time.Duration{ms(2000)}},
	}},
	"warm up": {2, ms(4000), []guavaStep{
		{cost: 1, waits: coldStart}, {idle: ms(4500)}, {cost: 1, waits: coldStart},
		{idle: ms(2500)}, {cost: 1, waits: []time.Duration{0, ms(500), ms(500), ms(500), ms(500), ms(500), ms(500), ms(500)}},
	}},
	"warm up and update": {2, ms(4000), []guavaStep{
		{cost: 1, waits: coldStart}, {idle: ms(4500)}, {cost: 1, waits: coldStart[:3]},
		{rate: 4, cost: 1, waits: []time.Duration{ms(875), ms(343.75), ms(281.25), ms(250), ms(250)}},
		{idle: ms(4250)}, {cost: 1, waits: []time.Duration{
			0, ms(718.75), ms(656.25), ms(593.75), ms(531.25), ms(468.75), ms(406.25), ms(343.75), ms(281.25), ms(250), ms(250),
		}},
	}},
	"warm up with weights": {10, ms(2000), []guavaStep{ // ten warm permits take a second; ten cold ones take two
		{cost: 4, waits: []time.Duration{0}}, {cost: 1, waits: []time.Duration{ms(1040)}}, {cost: 5, waits: []time.Duration{ms(210)}},
		{cost: 1, waits: []time.Duration{ms(750), ms(100)}},
	}},
}

func TestGuavasWaits(t *testing.T) {
	t.Parallel()
	for name, test := range guava {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, s *subject) {
				l := s.limiter
				rule := ratelimit.Rule{Name: "r", Algorithm: ratelimit.TokenBucket, Limit: test.rate, Per: time.Second, Warmup: test.warmup}
				if test.warmup == 0 { // the burst stays the same, so the missing permits are those that Guava has not stored
					rule.Prepay, rule.Burst = true, test.rate
					guavaAcquire(t, l, rule, test.rate)
				}
				for i, step := range test.steps {
					time.Sleep(step.idle)
					if step.rate != 0 {
						rule.Limit = step.rate
					}
					for j, want := range step.waits {
						if got := guavaAcquire(t, l, rule, step.cost); got != want {
							t.Errorf("step %d, call %d: waited %v, want %v", i, j, got, want)
						}
					}
				}
			})
		})
	}
}

func guavaAcquire(t *testing.T, l *ratelimit.Limiter, rule ratelimit.Rule, cost int64) time.Duration {
	t.Helper()
	start := time.Now()
	d, err := l.Wait(context.Background(), ratelimit.Request{Rule: rule, Cost: cost})
	if err != nil || !d.Allowed {
		t.Fatalf("got %+v, error %v", d, err)
	}
	return time.Since(start)
}

// TestGuavasTryAcquire repeats Guava's tests of tryAcquire with a timeout, without one, and at the smallest rate.
func TestGuavasTryAcquire(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		l := ratelimit.New(bare{s.store}) // it waits for weeks, and a beat would go on meanwhile
		try := func(rule ratelimit.Rule, wait time.Duration, want bool) {
			t.Helper()
			ctx, cancel := context.WithTimeout(context.Background(), wait+time.Microsecond)
			defer cancel()
			_, err := l.Wait(ctx, ratelimit.Request{Rule: rule})
			if refused := errors.Is(err, ratelimit.ErrTooManyRequests); refused == want || err != nil && !refused {
				t.Errorf("%s within %v: got error %v", rule.Name, wait, err)
			}
		}
		five := ratelimit.Rule{Name: "five", Algorithm: ratelimit.LeakyBucket, Prepay: true, Limit: 5, Per: time.Second}
		try(five, 0, true)
		try(five, 0, false)
		try(five, ms(200), true)
		try(five, ms(100), false)
		time.Sleep(ms(100))
		try(five, ms(100), true)

		slowest := ratelimit.Rule{Name: "slowest", Algorithm: ratelimit.TokenBucket, Prepay: true, Limit: 1, Per: 3660 * 24 * time.Hour}
		guavaAcquire(t, l, slowest, 1)
		try(slowest, 0, true)
		try(slowest, 0, false)
		time.Sleep((1<<31 - 1) * time.Millisecond)
		try(slowest, 0, false)
	})
}
