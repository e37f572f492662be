package lua

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// virtual runs the script on a server of its own, with a clock that the test sets.
type virtual struct {
	t      testing.TB
	client *redis.Client
	sha    string
	now    int64
	calls  atomic.Uint64
}

func newVirtual(t testing.TB) *virtual { return newVirtualBy(t, virtualClock) }

// newVirtualBy returns a virtual whose script reads the given clock.
func newVirtualBy(t testing.TB, clock string) *virtual {
	t.Helper()
	v := &virtual{t: t, client: redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, ReadTimeout: time.Minute})}
	t.Cleanup(func() { v.client.Close() })
	sha, err := v.client.ScriptLoad(t.Context(), join(clock)+"return run(KEYS, ARGV)\n").Result()
	if err != nil {
		t.Fatal(err)
	}
	v.sha = sha
	v.set(start)
	return v
}

func (v *virtual) set(now int64) {
	v.now = now
	v.client.Set(v.t.Context(), "clock", now, 0)
}

func (v *virtual) run(r *Run) (any, error) {
	args := append([]any{"evalsha", v.sha, len(r.Keys)}, r.Keys...)
	reply, err := v.client.Do(v.t.Context(), append(args, r.Args...)...).Result()
	return reply, Fault(err)
}

// decide decides a call. A claim that needs an ID and has none gets one. Several goroutines may call decide.
func (v *virtual) decide(call *engine.Call) (engine.Verdict, error) {
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Rule.Kind.Row().Releases && c.ID == 0 {
			c.ID = v.calls.Add(1)
		}
	}
	run := new(Run)
	run.AddDecision(call, v.now)
	reply, err := v.run(run)
	if err != nil {
		return engine.Verdict{}, err
	}
	return ReadDecision(reply, call)
}

func (v *virtual) adjust(call *engine.Call) {
	run := new(Run)
	run.AddAdjustment(call, v.now)
	if reply, err := v.run(run); reply != v.now {
		v.t.Fatalf("adjusting gives %v, %v", reply, err)
	}
}

// look looks at the count of a claim, by a script that may not write.
func (v *virtual) look(claim engine.Claim) engine.Looked {
	v.t.Helper()
	l, err := Look(&engine.Call{Prefix: "p", Claims: []engine.Claim{claim}}, v.now, func(r Run) (any, error) {
		return v.client.Do(v.t.Context(), append(append([]any{"evalsha_ro", v.sha, len(r.Keys)}, r.Keys...), r.Args...)...).Result()
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return l
}

// dump returns all keys except the clock, with their states.
func (v *virtual) dump() map[string]string {
	dump := make(map[string]string)
	for _, key := range v.client.Keys(v.t.Context(), "p:*").Val() {
		dump[key] = v.client.Dump(v.t.Context(), key).Val()
	}
	return dump
}
