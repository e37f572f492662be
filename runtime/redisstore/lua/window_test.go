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
