package lua

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
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

// stateKey is the key of the state of oneClaim.
const stateKey = "p:r:{s}:tag"

func oneClaim(kind engine.Kind) *engine.Call {
	rule := &engine.Rule{Name: "r", Tag: "tag", Kind: kind, Per: 60 * second, Slices: 4, Warmup: second}
	ask := engine.Ask{Rule: rule, Subject: "s", Cost: 1, Limit: 3, Burst: 3}
	if kind == engine.Anchored || kind == engine.DistinctAnchored {
		rule.Every = engine.Every{Days: 1, Zone: time.UTC}
		ask.Anchor, _ = engine.AnchorAt(time.UnixMicro(start))
	}
	return &engine.Call{Prefix: "p", Claims: []engine.Claim{{Ask: ask}}}
}

// damages returns states that no program writes, for a kind whose states are strings of the given number of numbers.
func damages(kind engine.Kind, numbers int, now float64) map[string]string {
	damages := map[string]string{"empty": "", "text": "hello", "a layout alone": "\x01", "short": "\x01" + packed(now), "long": packed(now, now, now, now, now)[1:]}
	for _, n := range []float64{math.NaN(), math.Inf(-1), math.Inf(1), -5, 0.5, 1e300} {
		state := packed(slices.Repeat([]float64{n}, numbers)...)
		damages[fmt.Sprint(n, " without a layout")], damages[fmt.Sprint(n)] = state, "\x01"+state
	}
	const century = 120 * 366 * 86400e6
	switch kind {
	case engine.FixedWindow:
		damages["far"] = "\x01" + packed(now, now+century, 3)
		damages["far start"] = "\x01" + packed(now+century, now+century+1, 3)
		damages["half a permit"] = "\x01" + packed(now, now+1e6, 2.5)
		damages["negative"] = "\x01" + packed(now, now+1e6, -1)
		damages["the second window"] = "\x01" + packed(now, now+1e6, 3, now+1e6, now+2e6, -1)
	case engine.SlidingCounter:
		damages["far"] = "\x01" + packed(now, 3, 3)
	case engine.TokenBucket, engine.LeakyBucket, engine.Prepaid, engine.Warmup:
		damages["far"] = "\x01" + packed(now, now+century, 0, 3)
		damages["a part of a microsecond"] = "\x01" + packed(now+1e6, now+1e6, 0.5, 3)
	}
	return damages
}

// A state with very many windows, which older programs opened ahead, is read. A call that would have to wait behind them asks again.
func TestManyWindows(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, ReadTimeout: time.Minute})
	defer client.Close()
	const many = 10_000
	begin := float64(client.Time(t.Context()).Val().UnixMicro())
	var numbers []float64
	for i := range many {
		at := begin + float64(i)*60e6
		numbers = append(numbers, at, at+60e6, 3)
	}
	if err := client.Set(t.Context(), stateKey, "\x01"+packed(numbers...), 0).Err(); err != nil {
		t.Fatal(err)
	}
	call := oneClaim(engine.FixedWindow)
	call.Claims[0].Wait = (many + 1) * 60 * second
	v, err := ReadDecision(decideOn(t, client, call)[0], call)
	if last := int64(begin) + many*60*second; err != nil || !call.AskAgain(v) || v.At != last {
		t.Errorf("got %+v, %v; want a call that asks again at %d", v, err, last)
	}
}

// A damaged state is treated as empty, and reported. It neither admits everybody for ever nor refuses its subject for ever.
func TestDamagedStateCountsAsNone(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	for _, kind := range engine.Kinds() {
		if kind == engine.Calendar || kind == engine.DistinctCalendar { // these have the states of other kinds
			continue
		}
		v.client.FlushDB(t.Context())
		v.admits(kind, 1)
		if v.client.Type(t.Context(), stateKey).Val() != "string" {
			continue
		}
		numbers := int(v.client.StrLen(t.Context(), stateKey).Val()) / 8
		for name, state := range damages(kind, numbers, start) {
			v.client.FlushDB(t.Context())
			sound := v.admits(kind, 6)
			v.client.Set(t.Context(), stateKey, state, 0)
			call := oneClaim(kind)
			w, err := v.decide(call)
			if err != nil || !w.Admitted || !w.Damaged {
				t.Errorf("%s, %s: %+v, %v", kind, name, w, err)
			}
			if more := v.admits(kind, 5); more != sound-1 {
				t.Errorf("%s, %s: %d calls are admitted, want %d", kind, name, more+1, sound)
			}
		}
	}
}

// admits returns how many of n calls are admitted.
func (v *virtual) admits(kind engine.Kind, n int) (admitted int) {
	v.t.Helper()
	v.set(v.now)
	for range n {
		w, err := v.decide(oneClaim(kind))
		if err != nil {
			v.t.Fatal(err)
		}
		if w.Admitted {
			admitted++
		}
	}
	return admitted
}

// Damaged times in lists, sets, blocks and free places are treated in the same way.
func TestDamagedTimesCountAsNone(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	const far = start + 120*366*86400*second
	for _, n := range []float64{math.Inf(1), -5, 0.5, far} {
		for _, kind := range []engine.Kind{engine.SlidingWindow, engine.Distinct} {
			v.client.FlushDB(t.Context())
			v.set(start)
			for i := range 3 {
				if kind == engine.Distinct {
					v.client.ZAdd(t.Context(), stateKey, redis.Z{Score: math.Abs(n) + 0.25, Member: i})
				} else {
					v.client.RPush(t.Context(), stateKey, packed(n))
				}
			}
			v.requireNone(oneClaim(kind))
		}
		v.client.FlushDB(t.Context())
		v.set(start)
		v.client.Set(t.Context(), "p:r:{s}:block:tag", "\x01"+packed(math.Abs(n)+far), 0)
		blocked := oneClaim(engine.FixedWindow)
		blocked.Claims[0].Rule.Block = second
		v.requireNone(blocked)
	}
	v.client.FlushDB(t.Context())
	v.set(start)
	v.admits(engine.SlidingWindow, 3)
	for name, places := range map[string]string{
		"no number":        packed(start+second, 0, math.NaN(), 0),
		"half a permit":    packed(start+second, 0, 0.5, 0),
		"negative permits": packed(start+second, 0, -1, 0),
		"without an end":   packed(math.Inf(1), 0, 1, 0),
	} {
		v.client.ZAdd(t.Context(), "p:r:{s}:free-places:tag", redis.Z{Score: start + second, Member: places})
		if free := v.look(oneClaim(engine.SlidingWindow).Claims[0]).Free; len(free) > 0 {
			t.Errorf("free places, %s: %v are told", name, free)
		}
		waits := oneClaim(engine.SlidingWindow)
		waits.Claims[0].Wait, waits.Peek = 100*second, true
		if w, err := v.decide(waits); err != nil || w.At != start+60*second || !w.Damaged {
			t.Errorf("free places, %s: %+v, %v", name, w, err)
		}
	}
}

// requireNone checks that a damaged state of the call is treated as empty, and reported once.
func (v *virtual) requireNone(call *engine.Call) {
	v.t.Helper()
	for i := range 3 {
		call.Claims[0].Member = fmt.Sprint("m", i)
		w, err := v.decide(call)
		first := i == 0 || call.Claims[0].Rule.Block > 0 // no call overwrites a damaged block
		if err != nil || !w.Admitted || w.Damaged != first {
			v.t.Errorf("%s, call %d: %+v, %v", call.Claims[0].Rule.Kind, i, w, err)
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

// The types of all keys are checked before the first write. A key of another type fails only its own call, which charges nothing.
func TestWrongTypeHarmsItsCallAlone(t *testing.T) {
	t.Parallel()
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
