package lua

import (
	"slices"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// The library caches claims, because other calls send the same. It must not cache the claims of an adjustment: they contain the time of a
// charge, so no other call sends them, and they would displace others.
func TestAdjustmentsAreNotKept(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
	v, run := newVirtual(t), new(Run)
	const calls = 1500
	for i := range calls {
		call := oneClaim(engine.FixedWindow)
		call.Report, call.Claims[0].Cost, call.Claims[0].Limit = i%2 == 0, int64(1+i/2), calls*calls
		run.AddDecision(call, v.now)
	}
	count := "run(KEYS, ARGV) local n = 0 for _, claims in pairs(known) do n = n + #claims end return { n, size, 1000 }" // MAX_KNOWN
	args := append(append([]any{"eval", body + count, len(run.Keys)}, run.Keys...), run.Args...)
	n, err := v.client.Do(t.Context(), args...).Int64Slice()
	if err != nil {
		t.Fatal(err)
	}
	if kept, counted, most := n[0], n[1], n[2]; kept != counted || kept > most || most >= calls {
		t.Errorf("after %d calls, %d claims are kept and %d are counted; want the same, and at most %d", calls, kept, counted, most)
	}
}

// EVALSHA makes functions anew in each run. A plain call that is admitted makes only the first part of its algorithm's file, and with a report
// only the second part and the reply besides. The first call of a subject writes its whole state, which another file does.
func TestPlainCallsMakeLittle(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	hourly := engine.NewSchedule(func(at time.Time) time.Time { return at.Truncate(time.Hour).Add(time.Hour) }, true, time.UTC)
	const list = `local made = {}
for name, module in pairs(used) do
  table.insert(made, name .. (module.make_others and '' or ', all of it') .. (module.room and ', room' or ''))
end
table.sort(made)
return made`
	for _, kind := range []engine.Kind{engine.SlidingWindow, engine.FixedWindow, engine.Calendar, engine.TokenBucket, engine.Prepaid, engine.SlidingCounter} {
		for i := range 6 {
			call, run := oneClaim(kind), new(Run)
			call.Claims[0].Rule.Schedule, call.Claims[0].Limit, call.Claims[0].Burst = hourly, 1000, 1000
			want := []string{kind.Row().Lua}
			if call.Report = i%2 > 0; call.Report {
				want = []string{"reply, all of it", kind.Row().Lua + ", room"}
				slices.Sort(want)
			}
			run.AddDecision(call, v.now)
			args := append(append([]any{"eval", join(virtualClock) + "run(KEYS, ARGV)\n" + list, len(run.Keys)}, run.Keys...), run.Args...)
			made, err := v.client.Do(t.Context(), args...).StringSlice()
			if err != nil || i > 0 && !slices.Equal(made, want) {
				t.Errorf("call %d of %s makes %q, error %v; want %q", i+1, kind, made, err, want)
			}
		}
		v.client.FlushDB(t.Context())
		v.set(v.now)
	}
}
