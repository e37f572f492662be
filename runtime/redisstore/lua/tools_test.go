package lua

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// The script tells the waiting calls of every algorithm that keeps places for them.
func TestPlacesOfEveryAlgorithm(t *testing.T) {
	for _, kind := range engine.Algorithms() {
		keeps := kind.Accepts("wait") && !kind.Row().Releases
		file := kind.Row().Lua
		if told := strings.Contains(mustRead(file), "function "+file+".charges("); keeps != told {
			t.Errorf("calls have places in a %s: %v; %s.lua has a function charges: %v", kind, keeps, file, told)
		}
		tag := kind.Row().Tag + "1m"
		if kind == engine.Calendar {
			tag = "cron:@daily"
		}
		if got := AlgorithmOf("prefix:name:{subject}:" + tag); got != kind.String() {
			t.Errorf("a key of %s is one of a %s, want %s", tag, got, kind)
		}
	}
}

// Of a large count, several runs tell the charges, each once, the oldest first.
func TestChargesOfSeveralRuns(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	for _, kind := range []engine.Kind{engine.SlidingWindow, engine.Amounts, engine.Distinct, engine.LeakyBucket} {
		tag := map[engine.Kind]string{engine.SlidingWindow: "1m", engine.Amounts: "amounts:1m", engine.Distinct: "distinct:1m", engine.LeakyBucket: "leaky:1m"}[kind]
		claim := engine.Claim{Ask: engine.Ask{Rule: &engine.Rule{Name: "r", Tag: tag, Kind: kind, Per: 60 * second}, Subject: "s", Cost: 1, Limit: 2500, Burst: 1}}
		n := 2500
		if kind == engine.LeakyBucket {
			claim.Wait, n = 3600*second, 2501
		}
		for i := range n {
			if kind != engine.LeakyBucket {
				v.set(v.now + 1)
			}
			claim.Member = fmt.Sprint(i)
			if w, err := v.decide(&engine.Call{Prefix: "p", Claims: []engine.Claim{claim}}); err != nil || !w.Admitted {
				t.Fatal(w, err)
			}
		}
		claim.Wait = 0
		taken := v.look(claim).Taken
		ascend := slices.IsSortedFunc(taken, func(a, b engine.Charge) int { return a.At.Compare(b.At) })
		permits := int64(0)
		for _, c := range taken {
			permits += c.Permits
		}
		if permits != 2500 || !ascend {
			t.Errorf("%s: %d charges with %d permits are told, sorted: %v", kind, len(taken), permits, ascend)
		}
	}
}

// The script tells when permits were taken and for when calls wait, and writes nothing.
func TestCharges(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	for _, kind := range []engine.Kind{
		engine.SlidingWindow, engine.FixedWindow, engine.TokenBucket, engine.LeakyBucket, engine.Amounts, engine.Distinct,
	} {
		claim := engine.Claim{Ask: engine.Ask{Rule: &engine.Rule{Name: kind.String(), Tag: kind.Row().Tag + "1m", Kind: kind, Per: 60 * second}, Subject: "s", Cost: 1, Limit: 3, Burst: 3}}
		tellsPast := kind == engine.SlidingWindow || kind == engine.Amounts || kind == engine.Distinct
		switch kind {
		case engine.Distinct:
			claim.Rule.Tag = "distinct:1m"
		case engine.LeakyBucket:
			claim.Burst = 1
		}
		if kind.Accepts("wait") {
			claim.Wait = 3600 * second
		}
		var want, got []int64
		for i := range 5 {
			claim.Member = fmt.Sprint(i)
			w, err := v.decide(&engine.Call{Prefix: "p", Claims: []engine.Claim{claim}})
			if err != nil {
				t.Fatal(err)
			}
			if w.Admitted && (tellsPast || w.At > v.now) {
				want = append(want, w.At)
			}
		}
		before := v.dump()
		seen := v.look(claim)
		for _, c := range seen.Taken {
			got = append(got, slices.Repeat([]int64{c.At.UnixMicro()}, int(c.Permits))...)
		}
		if len(want) == 0 || !slices.Equal(got, want) || len(seen.Free) > 0 || !maps.Equal(v.dump(), before) {
			t.Errorf("%s: got %v and %v free, want %v", kind, got, seen.Free, want)
		}
	}
}

// ReadBlock returns 0 for a state that no script writes.
func TestReadBlock(t *testing.T) {
	state := func(f float64) string { return string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))) }
	for text, want := range map[string][2]int64{
		state(1e15): {1e15}, "\x01" + state(1e15): {1e15}, "\x02" + state(1e15): {}, "\x01" + state(1e15) + state(7e6): {1e15, 7e6},
		"": {}, "text": {}, state(-1): {}, state(1 << 53): {}, state(math.NaN()): {}, state(math.Inf(1)): {},
		"\x01" + state(1e15) + state(-7): {1e15}, "\x01" + state(-1) + state(7e6): {},
	} {
		if end, length := ReadBlock(text); [2]int64{end, length} != want {
			t.Errorf("%q is a block of %d until %d, want %d", text, length, end, want)
		}
	}
	for key, want := range map[string]string{
		"p:r:{s}:distinct:1m": "distinct", "p:r:{s}:free:1m": "", "p:r:{s}:block:1m": "", "p:rules": "",
	} {
		if got := AlgorithmOf(key); got != want {
			t.Errorf("%s is of a %q, want %q", key, got, want)
		}
	}
}
