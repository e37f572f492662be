package lua

import (
	"math"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// decideOn sends a run of calls to a server by EVAL, and returns a reply for each.
func decideOn(t *testing.T, client *redis.Client, calls ...*engine.Call) []any {
	t.Helper()
	run := new(Run)
	for _, call := range calls {
		run.AddDecision(call, client.Time(t.Context()).Val().UnixMicro())
	}
	reply, err := client.Do(t.Context(), append(append([]any{"eval", Script, len(run.Keys)}, run.Keys...), run.Args...)...).Result()
	if len(calls) == 1 {
		if err != nil {
			return []any{err}
		}
		return []any{reply}
	}
	if err != nil {
		t.Fatal(err)
	}
	return reply.([]any)
}

func oneClaim(kind engine.Kind) *engine.Call {
	rule := &engine.Rule{Name: "r", Tag: "tag", Kind: kind, Per: 60 * second, Slices: 4, Warmup: second}
	return &engine.Call{Prefix: "p", Claims: []engine.Claim{{Rule: rule, Subject: "s", Cost: 1, Limit: 3, Burst: 3}}}
}

// A damaged state counts as none: it neither admits everybody for ever nor bars its subject.
func TestDamagedStateCountsAsNone(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close()
	for kind := engine.FixedWindow; kind <= engine.SlidingCounter; kind++ {
		if kind == engine.Calendar {
			continue // kept as fixed windows are
		}
		for _, number := range []float64{math.NaN(), math.Inf(-1), math.Inf(1), -5, 1e300} {
			state := packed(number, number, number, number)
			if kind == engine.FixedWindow || kind == engine.SlidingCounter {
				state = packed(number, number, number)
			}
			if err := client.Set(t.Context(), "p:r:{s}:tag", state, 0).Err(); err != nil {
				t.Fatal(err)
			}
			admitted := 0
			for range 6 {
				call := oneClaim(kind)
				v, err := ReadDecision(decideOn(t, client, call)[0], call)
				if err != nil {
					t.Fatalf("kind %d, %v: %v", kind, number, err)
				}
				if v.Admitted {
					admitted++
				}
			}
			if want := 3; kind != engine.Prepaid && kind != engine.Warmup && admitted != want {
				t.Errorf("kind %d, %v: %d calls are admitted, want %d", kind, number, admitted, want)
			} else if admitted == 0 || admitted == 6 {
				t.Errorf("kind %d, %v: %d of 6 calls are admitted", kind, number, admitted)
			}
			client.Del(t.Context(), "p:r:{s}:tag")
		}
	}
}

func packed(numbers ...float64) string {
	var b strings.Builder
	for _, n := range numbers {
		bits := math.Float64bits(n)
		for i := range 8 {
			b.WriteByte(byte(bits >> (8 * i)))
		}
	}
	return b.String()
}

// The types of all keys are checked before the first write: a key of another type harms its own call, and charges nothing.
func TestWrongTypeHarmsItsCallAlone(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close()
	if err := client.HSet(t.Context(), "p:foreign:{s}:tag", "field", "value").Err(); err != nil {
		t.Fatal(err)
	}
	foreign := oneClaim(engine.FixedWindow)
	foreign.Claims = append(foreign.Claims, foreign.Claims[0])
	foreign.Claims[1].Rule = &engine.Rule{Name: "foreign", Tag: "tag", Kind: engine.SlidingWindow, Per: second}
	foreign.Claims[0].Subject = "other"

	replies := decideOn(t, client, oneClaim(engine.FixedWindow), foreign, oneClaim(engine.FixedWindow))
	for i, reply := range replies {
		err, failed := reply.(error)
		if failed != (i == 1) || failed && !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("reply %d is %T %v", i, reply, reply)
		}
	}
	if n := client.Exists(t.Context(), "p:r:{other}:tag").Val(); n != 0 {
		t.Error("the call that failed has charged its first rule")
	}
}
