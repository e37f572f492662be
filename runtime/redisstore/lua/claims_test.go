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

// The library keeps one entry for calls that differ only in their members, or only in their IDs.
func TestCallsAreKeptWithoutTheirTexts(t *testing.T) {
	v, run := newVirtual(t), new(Run)
	for i := range 3 {
		member, running := oneClaim(engine.Distinct), oneClaim(engine.Concurrency)
		member.Claims[0].Member, running.Claims[0].ID = string(rune('a'+i)), uint64(i)
		run.AddDecision(member, v.now)
		run.AddDecision(running, v.now)
	}
	args := append(append([]any{"eval", body + "run(KEYS, ARGV)\nreturn size", len(run.Keys)}, run.Keys...), run.Args...)
	if kept, err := v.client.Do(t.Context(), args...).Result(); err != nil || kept != int64(2) {
		t.Errorf("after six calls of two rules, %v claims are kept, error %v; want 2", kept, err)
	}
}

// The cache is bounded, even if callers choose the costs and send the same claims with different flags.
func TestKnownCallsAreBounded(t *testing.T) {
	v, run := newVirtual(t), new(Run)
	const calls = 1500
	for i := range calls {
		call := oneClaim(engine.FixedWindow)
		call.Report, call.Claims[0].Cost, call.Claims[0].Limit = i%2 == 0, int64(1+i/2), calls*calls
		run.AddDecision(call, v.now)
	}
	count := "run(KEYS, ARGV) local n = 0 for _, claims in pairs(known) do n = n + #claims end return { n, size, MAX_KNOWN }"
	args := append(append([]any{"eval", body + count, len(run.Keys)}, run.Keys...), run.Args...)
	n, err := v.client.Do(t.Context(), args...).Int64Slice()
	if err != nil {
		t.Fatal(err)
	}
	if kept, counted, most := n[0], n[1], n[2]; kept != counted || kept > most || most >= calls {
		t.Errorf("after %d calls, %d claims are kept and %d are counted; want the same, and at most %d", calls, kept, counted, most)
	}
}
