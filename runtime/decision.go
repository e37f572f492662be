package ratelimit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Decision is the answer to [Limiter.Allow], [Limiter.Wait] and [Limiter.Peek].
type Decision struct {
	Allowed    bool
	Never      bool          // a rule of limit 0 refuses: to retry is pointless
	RetryAfter time.Duration // until all rules would admit the call; 0 if it is allowed, or Never
	Violations []Violation   // the rules that refused; if the call is allowed, those in shadow mode that would have
	Taken      int64         // of requests with UpTo: the permits taken from each rule
	Quotas     []Quota       // what the rules have left: after Peek, and where a report is asked for by [WithReport]
	At         time.Time     // the store's time: when the call is admitted, or else refused. Under no rule, this process's time
	Source     Source        // what decided

	charged *charged // nil if nothing was charged
}

// Refund gives exactly this charge back, once; later calls return nil. Permits that have left their window stay gone. A refusal
// has nothing to give back.
//
// The error is a *StoreError, or wraps the context's. If it came before a server took the permits back, since none could be
// reached, the next Refund tries again. If the reply of a server was lost, or the context ended meanwhile, no Refund does:
// permits may stay taken, but none goes back twice.
func (d Decision) Refund(ctx context.Context) error {
	if d.charged == nil {
		return nil
	}
	return d.charged.refund(ctx)
}

// charged is what an admitted call took, and may give back.
type charged struct {
	limiter *Limiter
	method  string
	one     [1]engine.Claim // room for what most calls are charged

	mu    sync.Mutex
	done  bool
	fleet charge
	local charge
}

// charge is what one store charged.
type charge struct {
	store  engine.Store
	prefix string
	claims []engine.Claim
}

// keep copies what the call took for the rules that are wanted.
func (c *call) keep(wanted func(*prepared) bool) *charged {
	kept := &charged{limiter: c.limiter, method: c.method}
	kept.fleet.store, kept.fleet.prefix = c.fleet.store, c.fleet.Prefix
	kept.local.store, kept.local.prefix = c.local.store, c.local.Prefix
	room := kept.one[:0]
	for i := range c.asked {
		a := &c.asked[i]
		if a.part == nil || !wanted(a.rule) || a.part.Claims[a.claim].Charged == 0 {
			continue
		}
		of := &kept.fleet
		if a.part == &c.local {
			of = &kept.local
		}
		if of.claims == nil {
			of.claims, room = room, nil
		}
		of.claims = append(of.claims, a.part.Claims[a.claim])
	}
	return kept
}

// RefundUnless implements bridge.Taken.
func (c *charged) RefundUnless(ctx context.Context, ok *bool) {
	if *ok {
		return
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace) // the end of ctx may be why the call failed
	defer cancel()
	_ = c.refund(back) // the call has an error of its own to return, and observers see this one
}

func (c *charged) refund(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return nil
	}
	err := storeError(ctx, c.method, errors.Join(c.fleet.giveBack(ctx), c.local.giveBack(ctx)))
	c.done = len(c.fleet.claims)+len(c.local.claims) == 0
	c.limiter.observeAfter(ctx, EventRefunded, c.method, err)
	return err
}

// giveBack gives back what is charged. What the store has surely not done may be given back by another attempt.
func (c *charge) giveBack(ctx context.Context) error {
	if len(c.claims) == 0 {
		return nil
	}
	for i := range c.claims {
		c.claims[i].Delta = -c.claims[i].Charged
	}
	err := c.store.Adjust(ctx, &engine.Call{Prefix: c.prefix, Claims: c.claims})
	c.claims = slices.DeleteFunc(c.claims, func(claim engine.Claim) bool { return claim.Delta == 0 })
	return err
}
