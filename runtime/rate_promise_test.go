package ratelimit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/memory"
)

// Whatever is known of the store's overrides is never older than the two seconds that SetRate promises, for a limiter that is
// called all the time and for one that is called rarely, though the store takes as long to answer as calls wait for it.
func TestRatesAreFollowedInTime(t *testing.T) {
	for name, every := range map[string]time.Duration{"busy": 10 * time.Millisecond, "rarely called": promised} {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New(nil, 100)
			l, other := New(store), New(store)
			l.overrides.fleet.store = slow{store}
			call := func() {
				if _, err := l.Peek(context.Background(), Request{Rule: PerSecond(1)}); err != nil {
					t.Fatal(err)
				}
			}
			call()
			if err := other.SetRate(context.Background(), "r", Override{Limit: 5}); err != nil {
				t.Fatal(err)
			}
			for set := time.Now(); time.Since(set) < promised; {
				time.Sleep(every)
				call()
			}
			if known := l.overrides.fleet.overrides["r"].Limit; known != 5 {
				t.Errorf("%s: a limit of %d is known two seconds after one of 5 was set", name, known)
			}
		})
	}
}

const promised = 2 * time.Second

// slow is a store whose answers take as long as a call waits for them.
type slow struct{ *memory.Store }

func (s slow) Settings(ctx context.Context, prefix string) (map[string]string, error) {
	time.Sleep(patience - time.Millisecond)
	return s.Store.Settings(ctx, prefix)
}
