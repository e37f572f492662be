// Package memory keeps the counts of rate limits in this process. It is the store of package memstore, and what a limiter counts with
// by itself. The arithmetic is package engine's.
package memory

import (
	"context"
	"errors"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// ErrFull is the error of a call that needs memory while the store is full of counts that still matter.
var ErrFull = errors.New("the store in process is full: raise WithMaxKeys or WithMaxBytes")

// Store is an engine.Store in memory. It has no goroutine: calls remove what has expired, a few entries at a time.
type Store struct {
	*table
	space    *space
	settings settings
}

// space tells the counts of stores that share a table apart. Its address is its identity, so its size must not be zero.
type space struct{ _ byte }

// table is all that is kept, by all stores that share it.
type table struct {
	clock  *clock
	seed   maphash.Seed
	bound  bound
	turn   atomic.Uint32 // which shard is swept next
	shards [shards]shard
}

// shards is how many parts of the table can decide at once. A set of shards is a bit mask, hence 64.
const shards = 64

// The bounds of a store for which its user names no others: counts, and bytes.
const (
	MaxKeys  = 1_000_000
	MaxBytes = 256 << 20
)

// New returns a store of at most maxKeys states, one for each rule and subject, which take about maxBytes bytes. With now nil it goes
// by the system's clock.
func New(now func() time.Time, maxKeys, maxBytes int64) *Store {
	t := &table{clock: newClock(now), seed: maphash.MakeSeed()}
	t.bound.maxKeys, t.bound.maxBytes = maxKeys, maxBytes
	for i := range t.shards {
		t.shards[i].chain(fewestHeads)
	}
	return &Store{table: t, space: new(space)}
}

// NewLike returns an empty store. If the store given is in memory as well, the two share the clock and the bounds of that; else the
// new one is as [New] makes it, by the clock that calls of the store given wait by, if it has one.
func NewLike(store engine.Store, maxKeys, maxBytes int64) *Store {
	if s, ok := store.(interface{ self() *Store }); ok { // also one that a *Store is embedded in
		return &Store{table: s.self().table, space: new(space)}
	}
	if s, ok := store.(engine.Sleeper); ok {
		return New(s.Time, maxKeys, maxBytes)
	}
	return New(nil, maxKeys, maxBytes)
}

func (s *Store) self() *Store { return s }

// setKey makes k the key of a count. It is written in place, since copying a key takes as long as finding its entry. Nobody can foresee the
// hash. All rules of a subject are in one shard.
func (s *Store) setKey(k *key, prefix string, rule *engine.Rule, subject string) {
	hash := maphash.String(s.seed, subject)
	k.space, k.prefix, k.rule, k.subject = s.space, prefix, rule, subject
	k.shard, k.hash = uint32(hash%shards), uint32((hash+rule.Hash()+7*maphash.String(s.seed, prefix))>>32)
}

// Decide implements engine.Store.
func (s *Store) Decide(_ context.Context, call *engine.Call) (engine.Verdict, error) {
	v, err := s.decide(call)
	if err != nil {
		s.sweep(shards)
		return s.decide(call)
	}
	return v, err
}

func (s *Store) decide(call *engine.Call) (v engine.Verdict, err error) {
	var few [fewKeys]key
	keys := s.keys(few[:], call)
	w := s.lock(keys)
	now := s.clock.now() // under the locks, so that time does not go back from one call to the next
	if plain := !call.Peek && !call.Report && !call.UpTo && !call.Refused; plain && w.admit(call.Claims, now) {
		v = engine.Verdict{Now: now, At: now, Admitted: true}
	} else {
		v, err = s.step(call, keys, w, now)
	}
	s.unlock(w)
	return v, err
}

// Admit decides a plain call that makes the claims for the subjects, if all of them are simple. It returns the time of the admission, and
// whether there was one; if not, nothing was done.
func (s *Store) Admit(prefix string, claims []*engine.Claim, subjects []string) (now int64, admitted bool) {
	var few [fewKeys]key
	keys := slices.Grow(few[:0], len(claims))[:len(claims)]
	for i, c := range claims {
		s.setKey(&keys[i], prefix, c.Rule, subjects[i])
	}
	w := s.lock(keys)
	now = s.clock.now()
	for i, c := range claims {
		w.claims = append(w.claims, *c)
		w.claims[i].Subject = subjects[i]
	}
	admitted = w.admit(w.claims, now)
	s.unlock(w)
	return now, admitted
}

// Since returns the time that has passed on the store's clock since at, in whole microseconds.
func (s *Store) Since(at int64) time.Duration {
	return max(0, time.Duration(s.clock.now()-at)*time.Microsecond)
}

// fewKeys is how many claims of a call need no memory for their keys.
const fewKeys = 4

// keys returns the keys of a call's claims, out of few if those are enough.
func (s *Store) keys(few []key, call *engine.Call) []key {
	keys := slices.Grow(few[:0], len(call.Claims))[:len(call.Claims)]
	for i := range keys {
		s.setKey(&keys[i], call.Prefix, call.Claims[i].Rule, call.Claims[i].Subject)
	}
	return keys
}

// lock locks the shards of the keys of a call, in ascending order, so that no two calls wait for each other. It finds the entries.
func (s *Store) lock(keys []key) *work {
	locked := uint64(0)
	for i := range keys {
		locked |= 1 << keys[i].shard
	}
	locked = max(locked, 1) // of a call without claims
	for m := locked; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].Lock()
	}
	w := &s.shards[bits.TrailingZeros64(locked)].work
	w.locked = locked
	for i := range keys {
		e, _ := s.shards[keys[i].shard].find(&keys[i])
		w.entries = append(w.entries, e)
	}
	return w
}

// unlock unlocks the shards of a call, and now and then removes what has expired from another one.
func (s *Store) unlock(w *work) {
	w.clear()
	w.calls++
	due := w.calls%sweepEvery == 0
	for m := w.locked; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].Unlock()
	}
	if due {
		s.sweep(1)
	}
}

// sweepEvery is after how many calls of one shard another one is swept.
const sweepEvery = 64

// sweep removes some of what has expired in the next n shards.
func (s *Store) sweep(n int) {
	now := s.clock.now()
	for range n {
		shard := &s.shards[s.turn.Add(1)%shards]
		shard.Lock()
		removed, bytes := shard.expire(now, 16)
		shard.Unlock()
		s.bound.add(-removed, -bytes)
	}
}
