package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"
	"unique"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// Decision is the answer to [Limiter.Allow], [Limiter.Wait] and [Limiter.Peek].
type Decision struct {
	Allowed    bool
	Never      bool          // a rule of limit 0 refuses: to retry is pointless
	RetryAfter time.Duration // until all rules would admit the call; 0 if it is allowed, or Never
	Violations []Violation   // the rules that refused; if the call is allowed, those in shadow mode that would have
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
	one     [1]decide.Claim // room for what most calls are charged

	mu    sync.Mutex
	done  bool
	fleet charge
	local charge
}

// charge is what one store charged.
type charge struct {
	store  decide.Store
	prefix unique.Handle[string]
	claims []decide.Claim
}

// keep copies what the call took for the rules that are wanted.
func (c *call) keep(wanted func(*prepared) bool) *charged {
	kept := &charged{limiter: c.limiter, method: c.method}
	kept.fleet.store, kept.fleet.prefix = c.fleet.store, c.fleet.Prefix
	kept.local.store, kept.local.prefix = c.local.store, c.local.Prefix
	room := kept.one[:0]
	for i := range c.asked {
		a := &c.asked[i]
		if a.part == nil || !wanted(a.rule) || !a.part.Claims[a.claim].Charged {
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

// giveBack keeps what the store says is still charged, and may be given back by another attempt.
func (c *charge) giveBack(ctx context.Context) error {
	var err error
	if len(c.claims) > 0 {
		err = c.store.Return(ctx, &decide.Call{Prefix: c.prefix, Claims: c.claims})
	}
	if err == nil {
		c.claims = nil
	}
	return err
}
