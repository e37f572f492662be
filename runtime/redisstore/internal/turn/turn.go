// Package turn lets the calls of this process that have a subject in common ask one after another, where they would only disturb
// each other. It is no lock for the fleet: calls of other processes come between.
package turn

import (
	"context"
	"hash/maphash"
	"math/bits"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// Turns are those of calls on one store.
type Turns struct {
	seed    maphash.Seed
	stripes [64]chan struct{} // each is full while it is taken. A set of them is a bit mask.
}

// New returns turns of which none is taken.
func New() *Turns {
	t := &Turns{seed: maphash.MakeSeed()}
	for i := range t.stripes {
		t.stripes[i] = make(chan struct{}, 1)
	}
	return t
}

// Take waits until it is the turn of a call, or until ctx ends. It returns what ends the turn. Stripes are taken in ascending
// order, so that no two calls wait for each other.
func (t *Turns) Take(ctx context.Context, call *decide.Call) (leave func(), err error) {
	var mask uint64
	for i := range call.Claims {
		mask |= 1 << (maphash.String(t.seed, call.Claims[i].Subject) % uint64(len(t.stripes)))
	}
	var taken []chan struct{}
	leave = func() {
		for _, stripe := range taken {
			<-stripe
		}
	}
	for ; mask != 0; mask &= mask - 1 {
		stripe := t.stripes[bits.TrailingZeros64(mask)]
		select {
		case stripe <- struct{}{}:
			taken = append(taken, stripe)
		case <-ctx.Done():
			leave()
			return nil, ctx.Err()
		}
	}
	return leave, nil
}
