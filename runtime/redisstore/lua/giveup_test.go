package lua

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

func waiting(kind engine.Kind, limit, burst, wait int64) *engine.Call {
	r := &engine.Rule{Name: "r", Tag: "tag", Kind: kind, Per: second}
	return &engine.Call{Prefix: "p", Claims: []engine.Claim{{Rule: r, Subject: "s", Cost: 1, Limit: limit, Burst: burst, Wait: wait}}}
}

// leave gives back the permits of a call, as if the call had not been made.
func leave(call *engine.Call) *engine.Call {
	call.Rollback, call.Claims[0].Delta = true, -call.Claims[0].Charged
	return call
}

// A third of the waiting calls gives up while others keep coming. The next callers get their places: at least
// 95 % of the limit is used, and never more than the limit. The engine has a test of the same name.
func TestPlacesThatAreGivenUpAreUsed(t *testing.T) {
	const gap, length, limit = second / 200, 20 * second, 50
	type caller struct {
		call            *engine.Call
		place, leavesAt int64
	}
	for kind, burst := range map[engine.Kind]int64{
		engine.SlidingWindow: 0, engine.FixedWindow: 0, engine.TokenBucket: 10, engine.LeakyBucket: 1,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			v, random := newVirtual(t), rand.New(rand.NewPCG(1, uint64(kind)))
			var callers []caller
			for now := int64(start); now < start+length; now += gap {
				v.set(now)
				callers = slices.DeleteFunc(callers, func(c caller) bool {
					leaves := c.leavesAt > 0 && c.leavesAt <= now
					if leaves {
						v.adjust(leave(c.call))
					}
					return leaves
				})
				c := caller{call: waiting(kind, limit, burst, second/2)}
				w, err := v.decide(c.call)
				if err != nil {
					t.Fatal(err)
				}
				if c.place = w.At; random.IntN(3) == 0 && c.place > now+gap {
					c.leavesAt = now + 1 + random.Int64N(c.place-now-gap)
				}
				if w.Admitted && c.place < start+length {
					callers = append(callers, c)
				}
			}
			given := int64(limit * length / second)
			t.Logf("%d of %d permits used", len(callers), given)
			if n := int64(len(callers)); 100*n < 95*given || n > given+burst {
				t.Errorf("%d of %d permits used", n, given)
			}
		})
	}
}

// A state keeps at most 64 free places. If there are more, the engine and the script lose the same ones.
func TestMostFreePlaces(t *testing.T) {
	const most, calls = 64, 80
	for _, kind := range []engine.Kind{engine.SlidingWindow, engine.TokenBucket, engine.LeakyBucket} {
		v := newVirtual(t)
		cell := engine.NewCell(waiting(kind, 1, 1, 0).Claims[0].Rule)
		cells := []*engine.Cell{&cell}
		both := func() (want, got *engine.Call) {
			want, got = waiting(kind, 1, 1, 100*second), waiting(kind, 1, 1, 100*second)
			w := want.Decide(cells, v.now)
			if g, err := v.decide(got); err != nil || g != w || !w.Admitted {
				t.Fatalf("%s: the script says %+v, error %v; the engine %+v", kind, g, err, w)
			}
			return want, got
		}
		var wants, gots [calls]*engine.Call
		for i := range calls {
			wants[i], gots[i] = both()
		}
		for i := 1; i < calls-1; i++ { // the last one stays
			leave(wants[i]).Adjust(cells, v.now)
			v.adjust(leave(gots[i]))
		}
		if n := len(cell.Free); n != most {
			t.Errorf("%s: %d free places, want %d", kind, n, most)
		}
		for range most + 2 {
			both()
		}
	}
}
