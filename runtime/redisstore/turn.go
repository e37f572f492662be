package redisstore

import (
	"context"
	"hash/maphash"
	"math/bits"
)

// turns are for calls that wait for places on several servers: of those which have a subject in common, one at a time asks.
type turns struct {
	seed    maphash.Seed
	stripes [64]chan struct{} // each is full while it is taken. A set of them is a bit mask.
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.stripes {
		t.stripes[i] = make(chan struct{}, 1)
	}
	return t
}

// take waits until it is the turn of a call under groups. It returns what ends the turn. Stripes are taken in ascending order, so
// that no two calls wait for each other.
func (t *turns) take(ctx context.Context, groups []*group) (leave func(), err error) {
	var mask uint64
	for _, g := range groups {
		mask |= 1 << (maphash.String(t.seed, g.claims[0].Subject) % uint64(len(t.stripes)))
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
