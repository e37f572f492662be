// Package memory keeps the counts of rate limits in this process. It is the store behind package memstore. A limiter also uses it for rules of
// instance scope, and while its own store fails. The arithmetic is in package engine.
package memory

import (
	"errors"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// ErrFull is the error of a call that needs memory while the store is full of counts that still matter.
var ErrFull = errors.New("the store in memory is full: raise WithMaxKeys or WithMaxBytes")

// Store is an engine.Store in memory. It has no goroutine: calls remove expired entries, a few at a time.
type Store struct {
	engine.Defaults
	*table
	Failure func() error // why settings cannot be read and written now; or nil
	space   *space
	fleets  sync.Map // of *fleet.Fleet: what the limiters of each prefix know in common
}

// space separates the counts of stores that share a table. Its address is its identity, so its size must not be zero.
type space struct{ _ byte }

// table holds the counts of all stores that share it.
type table struct {
	clock  *clock
	seed   maphash.Seed
	bound  bound
	sweeps atomic.Uint32 // how often a shard was swept; the shards are swept in their order
	shards [shards]shard
}

// shards is the number of parts of the table, each with its own lock. There are 64 because a set of shards is a bit mask.
const shards = 64

// The default bounds of a store: the number of counts, and bytes.
const (
	MaxKeys  = 1_000_000
	MaxBytes = 256 << 20
)

// New returns a store of at most maxKeys states, one for each rule and subject. They take at most about maxBytes bytes. If now is nil, the store
// uses the system's clock.
func New(now func() time.Time, maxKeys, maxBytes int64) *Store {
	t := &table{clock: newClock(now), seed: maphash.MakeSeed()}
	t.bound.maxKeys, t.bound.maxBytes = maxKeys, maxBytes
	for i := range t.shards {
		t.shards[i].start()
	}
	return &Store{table: t, space: new(space)}
}

// Local implements engine.Backend.
func (s *Store) Local() engine.Decider { return &Store{table: s.table, space: new(space)} }

// fewKeys is the largest number of claims whose keys and cells need no allocation.
const fewKeys = 4

// keys returns the keys of a call's claims. It uses the memory of few if that is enough. The hash has a random seed, so nobody can choose subjects
// that collide. All rules of a subject are in one shard. The prefix is not hashed: few stores have several.
func (s *Store) keys(few []key, call *engine.Call) []key {
	keys := slices.Grow(few[:0], len(call.Claims))[:len(call.Claims)]
	for i := range keys {
		k, c := &keys[i], &call.Claims[i] // copying a key takes as long as finding its entry
		hash := maphash.String(s.seed, c.Subject)
		k.space, k.prefix, k.rule, k.subject = s.space, call.Prefix, c.Rule, c.Subject
		k.shard, k.hash = uint32(hash%shards), uint32((hash+c.Rule.Hash())>>32)
	}
	return keys
}

// lock locks the shards of the keys of a call. It locks in ascending order, so that no two calls wait for each other.
func (s *Store) lock(keys []key) *work {
	locked := uint64(0)
	for i := range keys {
		locked |= 1 << keys[i].shard
	}
	locked = max(locked, 1) // a call without claims also needs a shard
	for m := locked; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].Lock()
	}
	w := &s.shards[bits.TrailingZeros64(locked)].work
	w.locked = locked
	return w
}

// unlock unlocks the shards of a call. Now and then it also removes expired entries from another shard.
func (s *Store) unlock(w *work) {
	w.calls++
	due := w.calls%sweepEvery == 0
	for m := w.locked; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].Unlock()
	}
	if due {
		s.expire(&s.shards[s.sweeps.Add(1)%shards])
	}
}

// sweepEvery is how many calls of one shard are made before the next shard is swept.
const sweepEvery = 64

// makeRoom removes expired entries from all shards that may have some, and reports whether it found any.
func (s *Store) makeRoom(now int64) (found bool) {
	for i := range s.shards {
		if shard := &s.shards[i]; shard.soonest.Load() <= now && s.expire(shard) > 0 {
			found = true
		}
	}
	return found
}

// expire removes some of the expired entries of a shard, and returns how many.
func (s *Store) expire(shard *shard) int64 {
	now := s.clock.now()
	shard.Lock()
	defer shard.Unlock()
	removed, bytes := shard.expire(now, 16)
	s.bound.add(-removed, -bytes)
	return removed
}
