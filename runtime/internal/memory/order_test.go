package memory

import (
	"context"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Each call reads the clock while it holds the lock, so the times of decisions are in the order of the decisions.
func TestTimesAreInOrder(t *testing.T) {
	var s *Store
	reads := 0
	s = New(func() time.Time {
		reads++
		for i := range s.shards {
			if !s.shards[i].TryLock() {
				return time.UnixMicro(hour)
			}
			s.shards[i].Unlock()
		}
		t.Error("the clock is read without a lock")
		return time.UnixMicro(hour)
	}, 1e6, 1<<30)
	rule := &engine.Rule{Name: "r", Kind: engine.TokenBucket, Per: 1_000_000}
	for range 3 { // of a new state, of one that is there, and a refusal
		if _, err := s.Decide(context.Background(), callOf("k", 2, rule)); err != nil {
			t.Fatal(err)
		}
	}
	s.Admit("ratelimit", []*engine.Claim{&callOf("other", 2, rule).Claims[0]}, []string{"k"})
	if reads < 4 {
		t.Errorf("the clock is read %d times", reads)
	}
}
