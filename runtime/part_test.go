package ratelimit

import (
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// An abandoned call gives back only what its own parts were charged. If a pooled call kept an earlier verdict, it would ask a store that has
// nothing to give back and may be lost.
func TestPartForgetsItsVerdict(t *testing.T) {
	p := part{verdict: engine.Verdict{Now: 1, At: 2, Admitted: true}}
	if p.reset("p", nil); p.verdict != (engine.Verdict{}) {
		t.Errorf("got %+v, want none", p.verdict)
	}
}
