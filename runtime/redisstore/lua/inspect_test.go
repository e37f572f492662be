package lua

import (
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// ratelimitctl can tell who waits, whatever the algorithm.
func TestPlacesOfEveryAlgorithm(t *testing.T) {
	for _, kind := range engine.Algorithms() {
		if file := kind.Row().Lua; kind.Takes("wait") != (due[file] != nil) {
			t.Errorf("calls wait for a %s: %v; the map due has an entry for %s: %v", kind, kind.Takes("wait"), file, due[file] != nil)
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
