// Package memory keeps the counts of rate limits in this process. It is the store behind package memstore. A limiter also uses it for rules of
// instance scope, and while its own store fails. The arithmetic is in package engine.
package memory

import (
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
)

// ErrFull is the error of a call that needs memory while the store is full of counts that still matter.
var ErrFull error = &backend.FullError{Err: errors.New("the store in memory is full: raise WithMaxKeys or WithMaxBytes")}

// Store is an backend.Store in memory. It has no goroutine: calls remove expired entries, a few at a time.
type Store struct {
	backend.Defaults
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
	return newStore(newClock(now), maxKeys, maxBytes)
}

func newStore(c *clock, maxKeys, maxBytes int64) *Store {
	t := &table{clock: c, seed: maphash.MakeSeed()}
	t.bound.maxKeys, t.bound.maxBytes = maxKeys, maxBytes
	for i := range t.shards {
		t.shards[i].start()
	}
	return &Store{table: t, space: new(space)}
}

// Local implements backend.Store.
func (s *Store) Local(whenFull bool) backend.Decider {
	if whenFull {
		return newStore(s.clock, s.bound.maxKeys, s.bound.maxBytes)
	}
	return &Store{table: s.table, space: new(space)}
}

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
	s.bound.count(-removed, -bytes)
	return removed
}
