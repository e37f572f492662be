package lua

import (
	"math"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// peek peeks by a script that may not write. The differential test does the same in random states.
func (v *virtual) peek(call *engine.Call) (engine.Verdict, error) {
	call.Peek = true
	run := new(Run)
	run.AddDecision(call, v.now)
	reply, err := v.client.Do(v.t.Context(), append(append([]any{"evalsha_ro", v.sha, len(run.Keys)}, run.Keys...), run.Args...)...).Result()
	if err != nil {
		return engine.Verdict{}, err
	}
	return ReadDecision(reply, call)
}

// A peek writes nothing: neither while permits count nor after they have left, nor at another limit, nor in a state without a layout.
func TestPeekWritesNothing(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	peek := func(u usage) {
		for _, after := range []int64{0, second, 55 * second, 61 * second, 3600 * second} {
			v.set(later + after)
			for _, limit := range []int64{1, 5, 500} {
				for _, cost := range []int64{1, 3} {
					call := u.call(0)
					call.Claims[0].Limit, call.Claims[0].Cost = limit, cost
					if _, err := v.peek(call); err != nil {
						t.Errorf("%s, %d us later, limit %d, cost %d: %v", u.name, after, limit, cost, err)
					}
				}
			}
		}
	}
	for _, u := range usages(t, engine.Kinds()) {
		v.client.FlushDB(t.Context())
		peek(u)
		u.play(v.set, func(call *engine.Call) { v.decide(call) }, v.adjust)
		peek(u)
	}
	v.client.FlushDB(t.Context())
	restore(v, "s")
	for _, u := range usages(t, kindsWithoutLayout) {
		peek(u)
	}
}

// A peek reports damage and does not repair it. It shows what the next charge will find.
func TestPeekAtDamage(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	const many = 5
	for _, kind := range engine.Kinds() {
		for i, damage := range []float64{math.Inf(1), 0.5} {
			v.client.FlushDB(t.Context())
			v.set(start)
			switch kind {
			case engine.SlidingWindow:
				for range many {
					v.client.RPush(t.Context(), stateKey, packed(damage))
				}
			case engine.Distinct, engine.DistinctAnchored:
				for i := range many {
					v.client.ZAdd(t.Context(), stateKey, redis.Z{Score: damage, Member: i})
				}
			case engine.Calendar, engine.DistinctCalendar: // these have the states of other kinds
				continue
			default:
				v.client.Set(t.Context(), stateKey, "\x01"+packed(slices.Repeat([]float64{damage}, 4)...), 0)
			}
			for range 2 {
				call := oneClaim(kind)
				call.Claims[0].Member = "m"
				w, err := v.peek(call)
				room, most := call.Claims[0].Room, int64(3)
				if kind == engine.Warmup || kind == engine.LeakyBucket {
					most = room
				}
				if err != nil || !w.Admitted || !w.Damaged || room != most {
					t.Errorf("%s, damage %d: %+v, %v, room for %d", kind, i, w, err, room)
				}
			}
		}
	}
}
