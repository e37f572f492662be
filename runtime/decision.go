package runtime

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

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
// their window by themselves stay gone. Only the first call of Return does anything, and a refusal has nothing to give
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
	parts    []charge
	returned atomic.Bool
}

type charge struct {
	store decide.Store
	call  decide.Call
}

// charged copies what c took for the rules that are wanted.
func (c *call) charged(wanted func(*prepared) bool) *Charged {
	result := &Charged{method: c.method}
	for _, p := range []*part{&c.fleet, &c.local} {
		of := charge{store: p.store, call: decide.Call{Prefix: p.Prefix}}
		for _, a := range c.asked {
			if a.part != p || !wanted(a.rule) {
				continue
			}
			if claim := p.Claims[a.claim]; claim.Charged && !of.has(claim) {
				of.call.Claims = append(of.call.Claims, claim)
			}
		}
		if of.call.Claims != nil {
			result.parts = append(result.parts, of)
		}
	}
	return result
}

// has reports whether the claim is in the charge: two rules of a call may share one.
func (c *charge) has(claim decide.Claim) bool {
	for _, known := range c.call.Claims {
		if known.Rule == claim.Rule && known.Subject == claim.Subject && known.Member == claim.Member {
			return true
		}
	}
	return false
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
	for i := range c.parts {
		failed = errors.Join(failed, c.parts[i].store.Return(ctx, &c.parts[i].call))
	}
	return storeError(ctx, c.method, failed)
}
