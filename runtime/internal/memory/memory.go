// Package memory keeps the state of rules in this process. It is what package memstore offers, and what a limiter counts
// with on its own. The arithmetic is package decide's.
package memory

import (
	"context"
	"errors"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// ErrFull is the cause when a new subject finds no place because all state that is kept is live.
var ErrFull = errors.New("the store is full of live state")

// Store is a decide.Store in memory. It has no goroutine: each decision drops a little of what has expired.
type Store struct {
	clock  clock
	max    int64
	count  atomic.Int64 // entries in all shards, and those about to be
	seed   maphash.Seed
	shards [shards]shard
}

// shards is how many parts of the store can decide at once. A set of shards is a bit mask, hence 64.
const shards = 64

// New returns a store of at most max states: one for each rule and subject. With now nil it goes by the system's clock.
func New(now func() time.Time, max int64) *Store {
	s := &Store{max: max, seed: maphash.MakeSeed()}
	s.clock.ask, s.clock.start = now, time.Now()
	for i := range s.shards {
		s.shards[i].entries = make(map[uint64]*entry)
	}
	return s
}

// Decide implements decide.Store.
func (s *Store) Decide(_ context.Context, call *decide.Call) (decide.Verdict, error) {
	v, err := s.decide(call)
	if err != nil && s.sweep(v.Now) {
		return s.decide(call)
	}
	return v, err
}

func (s *Store) decide(call *decide.Call) (decide.Verdict, error) {
	var few [4]place
	places, locked := s.lock(call, few[:0])
	defer s.unlock(locked)

	now := s.clock.now()
	v := decide.Verdict{Now: now, At: now}
	missing := int64(0)
	for _, p := range places {
		if dropped := p.shard.expire(now, 2); dropped > 0 {
			s.count.Add(-dropped)
		}
	}
	for i := range places {
		p, c := &places[i], &call.Claims[i]
		if p.entry = p.shard.find(p.hash, call.Prefix, c); p.entry == nil {
			p.entry = &none
			missing++
		}
		c.Earliest = p.entry.state.Earliest(c, now)
		v.At = max(v.At, c.Earliest)
	}
	if v.Admitted = v.At <= now+call.Wait; !v.Admitted {
		for i, p := range places {
			call.Claims[i].Room = p.entry.state.Room(&call.Claims[i], now)
		}
		return v, nil
	}
	if call.Peek {
		return v, nil
	}
	if missing > 0 && s.count.Add(missing) > s.max {
		s.count.Add(-missing)
		return v, ErrFull
	}
	for i, p := range places {
		c := &call.Claims[i]
		if p.entry != &none {
			p.entry.state.Commit(c, v.At)
		} else {
			p.shard.add(p.hash, call.Prefix, c, v.At)
		}
	}
	return v, nil
}

// none is the state of whoever has not been admitted yet. Nothing writes to it.
var none entry

// Return implements decide.Store.
func (s *Store) Return(_ context.Context, call *decide.Call) error {
	places, locked := s.lock(call, nil)
	defer s.unlock(locked)
	now := s.clock.now()
	for i, p := range places {
		if e := p.shard.find(p.hash, call.Prefix, &call.Claims[i]); e != nil {
			e.state.Return(&call.Claims[i], now)
		}
	}
	return nil
}

// Reset implements decide.Store.
func (s *Store) Reset(_ context.Context, call *decide.Call) error {
	places, locked := s.lock(call, nil)
	defer s.unlock(locked)
	for i, p := range places {
		if e := p.shard.find(p.hash, call.Prefix, &call.Claims[i]); e != nil {
			p.shard.remove(e)
			s.count.Add(-1)
		}
	}
	return nil
}

// place is where the state of a claim is found.
type place struct {
	shard *shard
	hash  uint64
	entry *entry
}

// lock locks the shards of a call in ascending order, so that no two calls wait for each other.
func (s *Store) lock(call *decide.Call, places []place) (_ []place, locked uint64) {
	for i := range call.Claims {
		c := &call.Claims[i]
		hash := maphash.String(s.seed, c.Subject)
		n := hash % shards
		places = append(places, place{shard: &s.shards[n], hash: hash ^ c.Rule.Hash})
		locked |= 1 << n
	}
	for m := locked; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].Lock()
	}
	return places, locked
}

func (s *Store) unlock(locked uint64) {
	for m := locked; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].Unlock()
	}
}

// sweep drops all that has expired, and reports whether that was anything.
func (s *Store) sweep(now int64) bool {
	var dropped int64
	for i := range s.shards {
		shard := &s.shards[i]
		shard.Lock()
		dropped += shard.expire(now, len(shard.queue))
		shard.Unlock()
	}
	s.count.Add(-dropped)
	return dropped > 0
}
