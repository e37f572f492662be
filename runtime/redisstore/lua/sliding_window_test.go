package lua

import (
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// A trigger admits any cost, but the script writes at most as many permits as the limit. So one call cannot stop the server.
func TestTriggerWritesNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	call := oneClaim(engine.SlidingWindow)
	call.Claims[0].Mode, call.Claims[0].Cost = engine.Trigger, 1_000_000
	v.client.ConfigResetStat(t.Context())
	if w, err := v.decide(call); err != nil || !w.Admitted {
		t.Fatalf("the verdict is %+v, with error %v; want the call admitted", w, err)
	}
	stats := v.client.InfoMap(t.Context(), "commandstats").Item("Commandstats", "cmdstat_rpush")
	if !strings.HasPrefix(stats, "calls=1,") { // one RPUSH adds at most a thousand permits
		t.Errorf("for a limit of 3, the script pushes permits with %s", stats)
	}
	if n := v.client.LLen(t.Context(), stateKey).Val(); n != 3 {
		t.Errorf("the window has %d permits, want 3", n)
	}
}
