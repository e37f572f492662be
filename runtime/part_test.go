package ratelimit

import (
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// A pooled call that is abandoned gives back only what its own parts were charged. The verdict of an earlier call would have it ask a store
// that has nothing to give back, and that may be lost.
func TestPartForgetsItsVerdict(t *testing.T) {
	p := part{verdict: engine.Verdict{Now: 1, At: 2, Admitted: true}}
	if p.reset("p", nil); p.verdict != (engine.Verdict{}) {
		t.Errorf("got %+v, want none", p.verdict)
	}
}
