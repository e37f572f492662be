package runtime

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// Decision is the answer to a programmatic call.
type Decision struct {
	Allowed    bool
	RetryAfter time.Duration // 0 if allowed
	Violations []Violation   // the rules that refused, in the order of the requests
	At         time.Time     // the store's time: when the call was admitted, or else refused

	charge *charge // nil if nothing was charged
}

// charge is what an admitted call took.
type charge struct {
	store    decide.Store
	call     decide.Call
	returned atomic.Bool
}

func newCharge(store decide.Store, call *decide.Call) *charge {
	c := &charge{store: store, call: *call}
	c.call.Claims = slices.Clone(call.Claims)
	return c
}

// Return gives back exactly what this decision took: its own permits, not others that came later. Permits that have left
// their window by themselves stay gone. Only the first call of Return does anything, and a refusal has nothing to give
// back. The error is a *StoreError, or ctx's.
func (d Decision) Return(ctx context.Context) error {
	if d.charge == nil || d.charge.returned.Swap(true) {
		return nil
	}
	return storeError(ctx, "", d.charge.store.Return(ctx, &d.charge.call))
}
