package lua

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Where the server's clock goes back, by up to a day in all, no rule admits more than its limit, and no subject is barred for longer than
// its window and the step. Real time never goes back: the limits hold by it.
func TestClockGoesBack(t *testing.T) {
	v := newVirtual(t)
	rapid.Check(t, func(t *rapid.T) {
		v.client.FlushDB(v.t.Context())
		call := oneClaim(rapid.SampledFrom(engine.Algorithms()).Draw(t, "kind"))
		c := &call.Claims[0]
		if c.Rule.Kind == engine.Calendar {
			c.Rule.Schedule = everyMinute(t)
		}
		real, back, log := int64(start), int64(0), admissions{rule: c.Rule}
		for range 60 {
			real += rapid.SampledFrom([]int64{0, 1, second, 7 * second, 20 * second, 61 * second}).Draw(t, "later")
			if step := rapid.SampledFrom([]int64{0, 0, 0, 0, 1, second, 59 * second, 3600 * second, 86_400 * second}).Draw(t, "step"); back+step <= 86_400*second {
				back += step
			}
			v.set(real - back)
			asked := *call
			asked.Claims = append([]engine.Claim(nil), call.Claims...)
			w, err := v.decide(&asked)
			if windows, again := err.(WindowsAt); again {
				run := new(Run)
				run.AddDecision(&asked, int64(windows))
				reply, failed := v.run(run)
				if failed != nil {
					t.Fatal(failed)
				}
				w, err = ReadDecision(reply, &asked)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !w.Admitted {
				if delay := asked.Claims[0].Earliest - w.Now; delay > c.Rule.Per+back+60*second {
					t.Fatalf("a step of %d us bars the subject for %d us", back, delay)
				}
				continue
			}
			if !log.add(real) {
				t.Fatalf("%s: the admission at %d is beyond the limit: %v", c.Rule.Kind, real, log.times)
			}
		}
	})
}

func everyMinute(t rapid.TB) *engine.Schedule {
	spec, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse("0 * * * * *")
	if err != nil {
		t.Fatal(err)
	}
	return engine.NewSchedule(spec.Next, true, time.UTC)
}

// admissions is the real times of all admissions under a limit of 3 a minute.
type admissions struct {
	rule   *engine.Rule
	times  []int64
	opened int64 // when the present fixed window did
	inside int   // how many it has
}

// add takes in an admission, and reports whether the limit allows it.
func (a *admissions) add(at int64) bool {
	a.times = append(a.times, at)
	n := len(a.times)
	switch a.rule.Kind {
	case engine.FixedWindow:
		if a.inside == 0 || at >= a.opened+60*second {
			a.opened, a.inside = at, 0
		}
		a.inside++
		return a.inside <= 3
	case engine.TokenBucket, engine.LeakyBucket: // 3 at once, and one every 20 seconds
		for i := range a.times {
			if int64(n-i) > 3+(at-a.times[i])/(20*second) {
				return false
			}
		}
		return true
	case engine.SlidingWindow, engine.SlidingCounter:
		return n <= 3 || a.times[n-4] <= at-60*second
	default: // a span of a minute touches two windows
		return n <= 6 || a.times[n-7] <= at-60*second
	}
}
