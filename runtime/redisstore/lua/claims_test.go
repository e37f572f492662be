package lua

import (
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// The library caches claims, because other calls send the same. It must not cache the claims of an adjustment: they contain the time of a
// charge, so no other call sends them, and they would displace others.
func TestAdjustmentsAreNotKept(t *testing.T) {
	v, run := newVirtual(t), new(Run)
	charged := oneClaim(engine.FixedWindow)
	run.AddDecision(charged, v.now)
	for i := range 3 {
		charged.Claims[0].At, charged.Claims[0].Delta = v.now+int64(i), -1
		run.AddAdjustment(charged, v.now)
	}
	args := append(append([]any{"eval", body + "run(KEYS, ARGV)\nreturn size", len(run.Keys)}, run.Keys...), run.Args...)
	if kept, err := v.client.Do(t.Context(), args...).Result(); err != nil || kept != int64(1) {
		t.Errorf("after one decision and three adjustments, %v claims are kept, error %v; want 1", kept, err)
	}
}
