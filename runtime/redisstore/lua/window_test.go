package lua

import (
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// Calls open at most 64 windows ahead. Those that would have to wait longer ask again, and then get the next windows.
func TestWindowsAhead(t *testing.T) {
	t.Parallel()
	const ahead, calls = 64, 150
	hourly := engine.NewSchedule(func(at time.Time) time.Time { return at.Truncate(time.Hour).Add(time.Hour) }, true, time.UTC)
	for _, r := range []*engine.Rule{
		{Name: "r", Tag: "fixed", Kind: engine.FixedWindow, Per: second},
		{Name: "r", Tag: "cron", Kind: engine.Calendar, Schedule: hourly},
	} {
		b := newBoth(t)
		ask := func() engine.Verdict {
			call := &engine.Call{Prefix: "p", Claims: []engine.Claim{{Ask: engine.Ask{Rule: r, Subject: "s", Cost: 1, Limit: 1, Wait: 3660 * 86400 * second}}}}
			w := b.decide(call)
			if w.Admitted == call.AskAgain(w) {
				t.Fatalf("%s: the verdict is %+v", r.Kind, w)
			}
			return w
		}
		last := int64(0) // the last window for which a call was admitted
		for left := calls; left > 0; {
			admitted, again := 0, int64(0)
			for range left {
				if w := ask(); !w.Admitted {
					again = w.At
				} else if admitted++; w.At <= last {
					t.Fatalf("%s: two calls are admitted to one window", r.Kind)
				} else {
					last = w.At
				}
			}
			if n := b.v.client.StrLen(t.Context(), "p:r:{s}:"+r.Tag).Val(); n > 1+24*(ahead+1) {
				t.Fatalf("%s: the state has %d bytes", r.Kind, n)
			}
			if size := b.cells[r].Size(); size > 24*4*ahead {
				t.Fatalf("%s: the engine's state has %d bytes", r.Kind, size)
			}
			if left -= admitted; left > 0 && (admitted < ahead || again <= b.v.now) {
				t.Fatalf("%s: %d calls are admitted, the others ask again at %d", r.Kind, admitted, again)
			}
			b.v.set(again)
		}
	}
}

// A place far ahead is given back also if the present window is not among those that the call was sent, because the process's clock is wrong.
func TestPlaceIsGivenBackByAWrongClock(t *testing.T) {
	t.Parallel()
	const minute = 60 * second
	every := engine.NewSchedule(func(at time.Time) time.Time { return at.Truncate(time.Minute).Add(time.Minute) }, true, time.UTC)
	for _, r := range []*engine.Rule{
		{Name: "r", Tag: "cron", Kind: engine.Calendar, Schedule: every},
		{Name: "r", Tag: "every", Kind: engine.Anchored, Every: engine.Every{Days: 1, Zone: time.UTC}},
	} {
		length := int64(minute)
		if r.Kind == engine.Anchored {
			length = 86400 * second
		}
		v := newVirtual(t)
		v.set(start - start%(86400*second))
		anchor, _ := engine.AnchorAt(time.UnixMicro(v.now))
		ask := func() (*engine.Call, engine.Verdict) {
			call := &engine.Call{Prefix: "p", Claims: []engine.Claim{{Ask: engine.Ask{Rule: r, Subject: "s", Cost: 1, Limit: 1, Wait: 9 * length, Anchor: anchor}}}}
			verdict, err := v.decide(call)
			if err != nil {
				t.Fatal(err)
			}
			return call, verdict
		}
		giveBack := func(call *engine.Call, estimate int64) {
			call.Claims[0].Delta = -1
			run := new(Run)
			run.AddAdjustment(call, estimate)
			if reply, err := v.run(run); reply != v.now {
				t.Fatalf("%s: giving back gives %v, %v", r.Kind, reply, err)
			}
		}
		_, _ = ask()
		second, _ := ask()
		third, placed := ask()
		giveBack(second, v.now)
		v.set(v.now + length + 1)
		giveBack(third, v.now-3*length)
		v.set(placed.At)
		if _, again := ask(); again.At != placed.At {
			t.Errorf("%s: the next place is at %d, want %d, which was given back", r.Kind, again.At, placed.At)
		}
	}
}
