package lua

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// Charges finds the waiting calls of every algorithm that keeps places for them.
func TestPlacesOfEveryAlgorithm(t *testing.T) {
	for _, kind := range engine.Algorithms() {
		keeps := kind.Accepts("wait") && !kind.Row().Releases
		if file := kind.Row().Lua; keeps != (readers[file] != nil) {
			t.Errorf("calls have places in a %s: %v; the map readers has an entry for %s: %v", kind, keeps, file, readers[file] != nil)
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

// BlockedUntil returns 0 for a state that no script writes.
func TestBlockedUntil(t *testing.T) {
	state := func(f float64) string { return string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))) }
	for text, want := range map[string]int64{
		state(1e15): 1e15, "\x01" + state(1e15): 1e15, "\x02" + state(1e15): 0,
		"": 0, "text": 0, state(-1): 0, state(1 << 53): 0, state(math.NaN()): 0, state(math.Inf(1)): 0,
	} {
		if got := BlockedUntil(text); got != want {
			t.Errorf("%q is a block until %d, want %d", text, got, want)
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
