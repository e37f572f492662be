package runtime

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"
	"unique"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// Decision is the answer to a programmatic call.
type Decision struct {
	Allowed    bool
	RetryAfter time.Duration // 0 if allowed
	Violations []Violation   // the rules that refused; if allowed, those in shadow mode that would have
	At         time.Time     // the store's time: when the call is admitted, or else refused

	charged *Charged // nil if nothing was charged
}

// Return gives back exactly what this decision took: its own permits, not others that came later. Permits that have left
// their window by themselves stay gone. A bucket, which keeps no history, gets back as many as were taken, also if it would
// have been full again without them. Only the first call of Return does anything, and a refusal has nothing to give
// back. The error is a *StoreError, or ctx's.
func (d Decision) Return(ctx context.Context) error {
	if d.charged == nil {
		return nil
	}
	return d.charged.giveBack(ctx)
}

// Charged is what an admitted call took, and may give back. Generated code holds it during a call.
type Charged struct {
	method   string
	prefix   unique.Handle[string]
	fleet    charge
	local    charge
	one      [1]decide.Claim // room for what most calls are charged
	returned atomic.Bool
}

// charge is what one store charged.
type charge struct {
	store  decide.Store
	claims []decide.Claim
}

// charged copies what c took for the rules that are wanted.
func (c *call) charged(wanted func(*prepared) bool) *Charged {
	if len(c.charges) == 0 {
		c.charges = make([]Charged, 16) // one allocation for so many decisions
	}
	result := &c.charges[0]
	c.charges = c.charges[1:]
	result.method, result.prefix = c.method, c.limiter.prefix
	result.fleet.store, result.local.store = c.fleet.store, c.local.store
	room := result.one[:0]
	for _, a := range c.asked {
		if a.part == nil || !wanted(a.rule) {
			continue
		}
		of := &result.fleet
		if a.part == &c.local {
			of = &result.local
		}
		claim := &a.part.Claims[a.claim]
		if !claim.Charged || of.has(claim) {
			continue
		}
		if of.claims == nil {
			of.claims, room = room, nil
		}
		of.claims = append(of.claims, *claim)
	}
	return result
}

// has reports whether the claim is in the charge: two rules of a call may share one.
func (c *charge) has(claim *decide.Claim) bool {
	return slices.ContainsFunc(c.claims, func(known decide.Claim) bool {
		return known.Rule == claim.Rule && known.Subject == claim.Subject && known.Member == claim.Member
	})
}

// RefundUnless gives the permits back to the rules that refund errors, unless ok is true by then. Generated code defers it, so
// that it sees a panic as well.
func (c *Charged) RefundUnless(ctx context.Context, ok *bool) {
	if *ok {
		return
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace) // the end of ctx may be why the call failed
	defer cancel()
	_ = c.giveBack(back) // the call has an error of its own to report
}

func (c *Charged) giveBack(ctx context.Context) error {
	if c.returned.Swap(true) {
		return nil
	}
	var failed error
	for _, of := range []*charge{&c.fleet, &c.local} {
		if len(of.claims) > 0 {
			failed = errors.Join(failed, of.store.Return(ctx, &decide.Call{Prefix: c.prefix, Claims: of.claims}))
		}
	}
	return storeError(ctx, c.method, failed)
}
