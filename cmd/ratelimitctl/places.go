package main

import (
	"context"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// place is a number of permits for a future time.
type place struct {
	In      string `json:"in"`
	Permits int64  `json:"permits"`
}

// readTimes reads when the permits of a count were taken, for when calls wait, and the free places: permits that calls gave up while others
// waited behind them. rule is that of the count, with its overrides applied. It must be valid.
func (t *tool) readTimes(ctx context.Context, s *inspected, rule ratelimit.Rule, state string) error {
	if rule.Prepay || rule.Warmup > 0 {
		return nil // no call waits for its own permits
	}
	taken, free, err := t.store.Charges(ctx, state, rule.Per, rule.Burst)
	now := t.fleet.Now()
	for _, c := range taken {
		if !c.At.After(now) {
			s.Last = append(s.Last, permits{c.At.UTC(), c.Permits})
		}
	}
	slices.SortStableFunc(s.Last, func(a, b permits) int { return a.At.Compare(b.At) })
	s.Last = s.Last[max(0, len(s.Last)-shownPermits):]
	s.Waiting, s.Free = append(s.Waiting, places(taken, now)...), append(s.Free, places(free, now)...)
	return err
}

// places returns the permits of a time to come.
func places(all []backend.Charge, now time.Time) (found []place) {
	for _, c := range all {
		if c.At.After(now) {
			found = append(found, place{words(c.At.Sub(now)), c.Permits})
		}
	}
	return found
}
