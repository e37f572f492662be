package ratelimit

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
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

	charged *charged // nil if nothing was charged
}

// Return gives back exactly what this decision took: its own permits, not others that came later. Permits that have left
// their window by themselves stay gone. A bucket, which keeps no history, gets back as many as were taken, also if it would
// have been full again without them. A refusal has nothing to give back.
//
// What was given back is not given back again, however often Return is called. The error is a *StoreError, or ctx's. If it came
// before a server took the permits, because none could be reached, say, then the next call of Return tries again. If it is
// not known whether a server took them, since its reply was lost, or if ctx ended meanwhile, then no call does: permits may
// stay taken, but none is given back twice.
func (d Decision) Return(ctx context.Context) error {
	if d.charged == nil {
		return nil
	}
	return d.charged.giveBack(ctx)
}

// charged is what an admitted call took, and may give back. Generated code holds it during a call.
type charged struct {
	method string
	prefix unique.Handle[string]
	one    [1]decide.Claim // room for what most calls are charged

	mu    sync.Mutex
	fleet charge
	local charge
}

// charge is what one store charged.
type charge struct {
	store  decide.Store
	claims []decide.Claim
}

// keep copies what c took for the rules that are wanted.
func (c *call) keep(wanted func(*prepared) bool) *charged {
	if len(c.charges) == 0 {
		c.charges = make([]charged, 16) // one allocation for so many decisions
	}
	result := &c.charges[0]
	c.charges = c.charges[1:]
	result.method, result.prefix = c.method, c.limiter.prefix
	result.fleet.store, result.local.store = c.fleet.store, c.local.store
	room, shared := result.one[:0], false
	for i := range c.asked {
		a := &c.asked[i]
		if a.part == nil || !wanted(a.rule) {
			continue
		}
		of := &result.fleet
		if a.part == &c.local {
			of = &result.local
		}
		claim := &a.part.Claims[a.claim]
		shared = shared || a.cost != claim.Cost
		if !claim.Charged || of.add(a.cost, claim) {
			continue
		}
		if of.claims == nil {
			of.claims, room = room, nil
		}
		of.claims = append(of.claims, *claim)
		of.claims[len(of.claims)-1].Cost = a.cost
	}
	if shared {
		result.fleet.share(c.fleet.Claims)
		result.local.share(c.local.Claims)
	}
	return result
}

// find returns the claim of a state, or nil.
func find(claims []decide.Claim, like *decide.Claim) *decide.Claim {
	for i := range claims {
		if c := &claims[i]; c.Rule == like.Rule && c.Subject == like.Subject && c.Member == like.Member {
			return c
		}
	}
	return nil
}

// add adds the cost of one more rule to the claim that it shares with others, if that is in the charge.
func (c *charge) add(cost int64, claim *decide.Claim) bool {
	known := find(c.claims, claim)
	if known != nil {
		known.Cost += min(cost, math.MaxInt64-known.Cost)
	}
	return known != nil
}

// share settles what claims give back that were charged for other rules as well, whose permits stay taken: nothing of a member,
// who is one for all of them, and of a warm-up no more than its permits are worth.
func (c *charge) share(whole []decide.Claim) {
	c.claims = slices.DeleteFunc(c.claims, func(claim decide.Claim) bool {
		return claim.Member != "" && claim.Cost < find(whole, &claim).Cost
	})
	for i := range c.claims {
		if claim := &c.claims[i]; claim.Cost < find(whole, claim).Cost {
			claim.Extra, claim.Stored = 0, 0
		}
	}
}

// RefundUnless gives the permits back to the rules that refund errors, unless ok is true by then. Generated code defers it, so
// that it sees a panic as well.
func (c *charged) RefundUnless(ctx context.Context, ok *bool) {
	if *ok {
		return
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace) // the end of ctx may be why the call failed
	defer cancel()
	_ = c.giveBack(back) // the call has an error of its own to report
}

func (c *charged) giveBack(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return storeError(ctx, c.method, errors.Join(c.fleet.giveBack(ctx, c.prefix), c.local.giveBack(ctx, c.prefix)))
}

// giveBack keeps what the store says is still charged, and may be returned again.
func (c *charge) giveBack(ctx context.Context, prefix unique.Handle[string]) error {
	var err error
	if len(c.claims) > 0 {
		err = c.store.Return(ctx, &decide.Call{Prefix: prefix, Claims: c.claims})
	}
	if err == nil {
		c.claims = nil
	}
	return err
}
