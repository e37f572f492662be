package lua

import (
	"slices"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// newBoth returns a function that decides copies of a call with the engine and with the script, and requires equal verdicts. It returns the
// script's copy of the call.
func newBoth(t *testing.T, v *virtual) (decide func(*engine.Call) (*engine.Call, engine.Verdict), cells map[*engine.Rule]*engine.Cell) {
	cells = make(map[*engine.Rule]*engine.Cell)
	return func(call *engine.Call) (*engine.Call, engine.Verdict) {
		t.Helper()
		copied, of := *call, make([]*engine.Cell, len(call.Claims))
		copied.Claims = slices.Clone(call.Claims)
		for i, c := range call.Claims {
			if cells[c.Rule] == nil {
				cell := engine.NewCell(c.Rule)
				cells[c.Rule] = &cell
			}
			of[i] = cells[c.Rule]
		}
		want := call.Decide(of, v.now)
		got, err := v.decide(&copied)
		if err != nil || got != want {
			t.Fatalf("the script says %+v, error %v; the engine %+v", got, err, want)
		}
		return &copied, got
	}, cells
}

// Calls open at most 64 windows ahead. Those that would have to wait longer ask again, and then get the next windows.
func TestWindowsAhead(t *testing.T) {
	const ahead, calls = 64, 150
	hourly := engine.NewSchedule(func(at time.Time) time.Time { return at.Truncate(time.Hour).Add(time.Hour) }, true, time.UTC)
	for _, r := range []*engine.Rule{
		{Name: "r", Tag: "fixed", Kind: engine.FixedWindow, Per: second},
		{Name: "r", Tag: "cron", Kind: engine.Calendar, Schedule: hourly},
	} {
		v := newVirtual(t)
		decide, cells := newBoth(t, v)
		ask := func() engine.Verdict {
			call := &engine.Call{Prefix: "p", Claims: []engine.Claim{{Rule: r, Subject: "s", Cost: 1, Limit: 1, Wait: 3660 * 86400 * second}}}
			_, w := decide(call)
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
			if n := v.client.StrLen(t.Context(), "p:r:{s}:"+r.Tag).Val(); n > 1+24*(ahead+1) {
				t.Fatalf("%s: the state has %d bytes", r.Kind, n)
			}
			if size := cells[r].State.Size(); size > 24*4*ahead {
				t.Fatalf("%s: the engine's state has %d bytes", r.Kind, size)
			}
			if left -= admitted; left > 0 && (admitted < ahead || again <= v.now) {
				t.Fatalf("%s: %d calls are admitted, the others ask again at %d", r.Kind, admitted, again)
			}
			v.set(again)
		}
	}
}
