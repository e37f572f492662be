package lua

import (
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// If the server's clock is set back, by up to a day in all, no rule admits more than its limit by real time, and no subject is refused for
// longer than its window and the step together.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
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
			w, asked := v.decideAgain(t, call)
			if !w.Admitted {
				longest := 60*second + back
				if c.Rule.Kind == engine.SlidingCounter {
					longest += 60 * second / c.Rule.Slices
				}
				if delay := asked.Claims[0].Earliest - w.Now; delay > longest {
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

// If the server's clock is set forward, a subject gets at most one limit too early: any span of real time has at most one limit more than it
// may have without the step.
func TestClockGoesForward(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	rapid.Check(t, func(t *rapid.T) {
		v.client.FlushDB(v.t.Context())
		call := oneClaim(rapid.SampledFrom(engine.Algorithms()).Draw(t, "kind"))
		rule := call.Claims[0].Rule
		if rule.Kind == engine.Calendar {
			rule.Schedule = everyMinute(t)
		}
		step := rapid.SampledFrom([]int64{1, second, 30 * second, 59 * second, 3600 * second, 86_400 * second}).Draw(t, "step")
		real, ahead, when := int64(start), int64(0), rapid.IntRange(0, 59).Draw(t, "when")
		var admitted []int64
		for i := range 60 {
			if i == when {
				ahead = step
			}
			real += rapid.SampledFrom([]int64{0, 0, 1, second, 7 * second, 20 * second, 61 * second}).Draw(t, "later")
			v.set(real + ahead)
			if w, _ := v.decideAgain(t, call); !w.Admitted {
				continue
			}
			admitted = append(admitted, real)
			for first, from := range admitted {
				if n, most := int64(len(admitted)-first), 3+mostWithin(rule.Kind, real-from); n > most {
					t.Fatalf("%s: %d admissions from %d on; at most %d may be: %v", rule.Kind, n, from, most, admitted)
				}
			}
		}
	})
}

// mostWithin returns how many calls a limit of 3 a minute may admit in a span, both ends included.
func mostWithin(kind engine.Kind, span int64) int64 {
	switch kind {
	case engine.TokenBucket, engine.LeakyBucket:
		return 3 + span/(20*second)
	case engine.SlidingWindow, engine.SlidingCounter:
		return 3 * (1 + span/(60*second))
	default: // several windows may end within the span
		return 3 * (2 + span/(60*second))
	}
}

// decideAgain decides a copy of a call. If the script asks for another calendar window, decideAgain decides the call once more.
func (v *virtual) decideAgain(t *rapid.T, call *engine.Call) (engine.Verdict, *engine.Call) {
	asked := *call
	asked.Claims = slices.Clone(call.Claims)
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
	return w, &asked
}

func everyMinute(t rapid.TB) *engine.Schedule {
	spec, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse("0 * * * * *")
	if err != nil {
		t.Fatal(err)
	}
	return engine.NewSchedule(spec.Next, true, time.UTC)
}

// admissions holds the real times of all admissions under a limit of 3 a minute.
type admissions struct {
	rule  *engine.Rule
	times []int64
	opens []int // the indexes of admissions that may have opened a fixed window
}

// add adds an admission, and reports whether the limit allows it.
func (a *admissions) add(at int64) bool {
	a.times = append(a.times, at)
	n := len(a.times)
	switch a.rule.Kind {
	case engine.FixedWindow: // a window admits 3. It lasts a minute, or longer if the clock is set back
		opens := func(i int) bool { return n-1-i <= 3 && at >= a.times[i]+60*second }
		if n == 1 || slices.ContainsFunc(a.opens, opens) {
			a.opens = append(a.opens, n-1)
		}
		return slices.ContainsFunc(a.opens, func(i int) bool { return n-i <= 3 })
	case engine.TokenBucket, engine.LeakyBucket: // 3 at once, and then one every 20 seconds
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
