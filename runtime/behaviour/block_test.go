package behaviour_test

import (
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// With a BlockMax, each block is twice as long as the last one. A call of a blocked key begins no block and makes none longer. The refusal that
// begins a block is the rule's own; those that follow have the source block.
func TestBlocksDouble(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{
			Name: "r", Limit: 1, Per: time.Hour, Block: time.Second, BlockMax: 2500 * time.Millisecond,
		}, Key: "eve"}
		s.admit(t, q)
		for _, want := range []time.Duration{1000, 2000, 2500} {
			before := s.peek(t, q)
			if before.Source == ratelimit.SourceBlock || before.Quotas[0].Remaining != 0 {
				t.Errorf("before a block of %dms: %+v", want, before)
			}
			if d := s.refuse(t, q); d.Source != ratelimit.SourceStore || d.RetryAfter < time.Hour-10*time.Minute {
				t.Errorf("a block of %dms begins: %+v", want, d)
			}
			q.Rule.Limit = 2 // the rule would admit the call now
			for range 3 {
				if d := s.refuse(t, q); d.Source != ratelimit.SourceBlock || d.RetryAfter > want*time.Millisecond {
					t.Errorf("a block of %dms: %+v", want, d)
				}
			}
			if d := s.peek(t, q); d.Allowed || d.Source != ratelimit.SourceBlock {
				t.Errorf("a peek at a block of %dms: %+v", want, d)
			}
			s.pass(want * time.Millisecond)
			if d := s.peek(t, q); !d.Allowed {
				t.Errorf("after a block of %dms: %+v", want, d)
			}
			q.Rule.Limit = 1
		}
		if n, err := s.limiter.Reset(t.Context(), q); n != 1 || err != nil {
			t.Errorf("Reset finds %d, error %v", n, err)
		}
		s.admit(t, q)
		if s.refuse(t, q); s.refuse(t, q).Source != ratelimit.SourceBlock {
			t.Error("no block begins after a reset")
		}
	})
}
