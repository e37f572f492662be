package parts_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/memory"
	"github.com/ratelimit-go/ratelimit/internal/parts"
)

// failing is a store that may be lost.
type failing struct {
	*memory.Store
	lost bool
}

var errLost = errors.New("lost")

func (f *failing) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	if f.lost {
		return engine.Verdict{}, errLost
	}
	return f.Store.Decide(ctx, call)
}

// A call that is split by its subjects has the same answer as one that a single store decides, and charges the same. If a part fails, nothing
// is charged.
func TestPartsDecideLikeAWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, 0)
		clock := func() time.Time { return now }
		whole := memory.New(clock, 1000, 1<<20)
		stores := map[string]*failing{}
		var call engine.Call
		split := parts.Split(func(i int) (string, backend.Decider) {
			subject := call.Claims[i].Subject
			return subject, stores[subject]
		})
		rules := []*engine.Rule{
			{Name: "sliding", Kind: engine.SlidingWindow, Per: 1_000_000},
			{Name: "bucket", Tag: "bucket", Kind: engine.TokenBucket, Per: 1_000_000},
			{Name: "fixed", Tag: "fixed", Kind: engine.FixedWindow, Per: 1_000_000},
		}
		for _, subject := range []string{"a", "b", "c"} {
			stores[subject] = &failing{Store: memory.New(clock, 1000, 1<<20)}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond)
			call = engine.Call{Prefix: "p", Report: true, UpTo: rapid.IntRange(0, 4).Draw(t, "up to") == 0}
			cost := rapid.Int64Range(1, 3).Draw(t, "cost")
			for i, subject := range rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "order") {
				if i < 2 {
					rule := rapid.SampledFrom(rules).Draw(t, "rule")
					call.Claims = append(call.Claims, engine.Claim{Ask: engine.Ask{Rule: rule, Subject: subject, Cost: cost, Limit: 4, Burst: 4}})
				}
			}
			lost := stores[call.Claims[rapid.IntRange(0, 1).Draw(t, "which")].Subject]
			lost.lost = rapid.IntRange(0, 4).Draw(t, "lost") == 0
			other := call
			other.Claims = append([]engine.Claim(nil), call.Claims...)
			got, err := split.Decide(t.Context(), &call)
			if wasLost := lost.lost; wasLost {
				if lost.lost = false; !errors.Is(err, errLost) {
					t.Fatalf("a part is lost: %+v, error %v", got, err)
				}
				continue
			}
			want, _ := whole.Decide(t.Context(), &other)
			if err != nil || got.Admitted != want.Admitted || got.Taken != want.Taken || got.At != want.At {
				t.Fatalf("got %+v, error %v; want %+v", got, err, want)
			}
			for i := range call.Claims {
				a, b := call.Claims[i], other.Claims[i]
				if a.Charged != b.Charged || a.Refused != b.Refused || a.Earliest != b.Earliest || a.Room != b.Room {
					t.Fatalf("claim %d of %v: got %+v; want %+v", i, fmt.Sprint(got.Admitted), a, b)
				}
			}
			if got.Admitted && rapid.Bool().Draw(t, "refund") {
				for i := range call.Claims {
					call.Claims[i].Delta, other.Claims[i].Delta = -call.Claims[i].Charged, -other.Claims[i].Charged
				}
				if err := errors.Join(split.Adjust(t.Context(), &call), whole.Adjust(t.Context(), &other)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
