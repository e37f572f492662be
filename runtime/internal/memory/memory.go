// Package memory keeps the state of rules in this process. It is what package memstore offers, and what a limiter counts
// with on its own. The arithmetic is package decide's.
package memory

import (
	"context"
	"errors"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
	"unique"

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

	settings settings
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

// NewLike returns an empty store that goes by the clock of store, if that is in memory as well.
func NewLike(store decide.Store, max int64) *Store {
	if s, ok := store.(*Store); ok {
		return New(s.clock.ask, max)
	}
	return New(nil, max)
}

// Decide implements decide.Store.
func (s *Store) Decide(_ context.Context, call *decide.Call) (decide.Verdict, error) {
	v, err := s.decide(call)
	if err != nil {
		s.sweep(v.Now)
		return s.decide(call) // there may be room now, and the attempt itself may have made some
	}
	return v, err
}

func (s *Store) decide(call *decide.Call) (decide.Verdict, error) {
	var few [2]place
	places, locked := s.lock(call, few[:0])
	defer s.unlock(locked)

	now := s.clock.now()
	v, err := s.step(call, places, now)
	for i := range places { // now, since the call may have revived its own
		if dropped := places[i].shard.expire(now, 2); dropped > 0 {
			s.count.Add(-dropped)
		}
	}
	return v, err
}

// step decides a call whose shards are locked.
func (s *Store) step(call *decide.Call, places []place, now int64) (decide.Verdict, error) {
	v := decide.Verdict{Now: now, At: now + call.After, Admitted: !call.Refused}
	if call.From != 0 {
		v.At = max(v.At, call.From)
	}
	added := int64(0)
	for i := range places {
		p, c := &places[i], &call.Claims[i]
		p.find(call.Prefix, c)
		check(p.state, c, &v)
		if p.entry == nil && charges(c, now) {
			added++
		}
	}
	if !v.Admitted {
		return v, s.refuse(call, places, now)
	}
	if call.Peek {
		return v, nil
	}
	if added > 0 && s.count.Add(added) > s.max {
		s.count.Add(-added)
		return v, ErrFull
	}
	for i := range places {
		if c := &call.Claims[i]; charges(c, now) {
			places[i].commit(call.Prefix, c, v)
		}
	}
	return v, nil
}

// check takes one claim's answer into the verdict.
func check(state decide.State, c *decide.Claim, v *decide.Verdict) {
	c.Charged, c.Earliest, c.Room, c.Fired = false, 0, 0, 0
	if c.Mode == decide.Trigger {
		return
	}
	c.Earliest = state.Earliest(c, v.Now)
	if !c.Refused(v.Now) {
		v.At = max(v.At, c.Earliest)
		return
	}
	c.Room = decide.Room(state, c, v.Now)
	v.Admitted = v.Admitted && c.Mode == decide.Shadow
}

// charges reports whether an admitted call is charged to this claim: not to a shadow that would have refused it.
func charges(c *decide.Claim, now int64) bool {
	return !c.Refused(now) && c.Rule.Kind != decide.Block
}

// refuse begins the blocks that follow from a refusal.
func (s *Store) refuse(call *decide.Call, places []place, now int64) error {
	for i := range places {
		c, p := &call.Claims[i], places[i]
		if call.Peek || c.Rule.Kind != decide.Block || c.Refused(now) || !call.Claims[i+1].Refused(now) {
			continue
		}
		decide.Start(p.state, c.Rule, now)
		if p.entry != nil {
			continue
		}
		if s.count.Add(1) > s.max {
			s.count.Add(-1)
			return ErrFull
		}
		p.shard.add(p.hash, call.Prefix, c, p.state)
	}
	return nil
}

// Return implements decide.Store.
func (s *Store) Return(_ context.Context, call *decide.Call) error {
	places, locked := s.lock(call, nil)
	defer s.unlock(locked)
	now := s.clock.now()
	for i, p := range places {
		c := &call.Claims[i]
		e := p.shard.find(p.hash, call.Prefix, c)
		if e == nil || !c.Charged {
			continue
		}
		e.state.Return(c, now)
		if call.Undo {
			decide.Close(e.state, c)
		}
		if e.state.Expiry(c.Rule) <= now {
			p.shard.remove(e)
			s.count.Add(-1)
		}
	}
	return nil
}

// Reset implements decide.Store.
func (s *Store) Reset(_ context.Context, call *decide.Call) (int, error) {
	found := 0
	places, locked := s.lock(call, nil)
	defer s.unlock(locked)
	for i, p := range places {
		if e := p.shard.find(p.hash, call.Prefix, &call.Claims[i]); e != nil {
			if e.state.Expiry(call.Claims[i].Rule) > s.clock.now() {
				found++
			}
			p.shard.remove(e)
			s.count.Add(-1)
		}
	}
	return found, nil
}

// place is where the state of a claim is found, or will be.
type place struct {
	shard *shard
	hash  uint64
	entry *entry // nil as long as the state is new
	state decide.State
}

func (p *place) find(prefix unique.Handle[string], c *decide.Claim) {
	if p.entry = p.shard.find(p.hash, prefix, c); p.entry != nil {
		p.state = p.entry.state
	} else {
		p.state = decide.NewState(c.Rule)
	}
}

func (p *place) commit(prefix unique.Handle[string], c *decide.Claim, v decide.Verdict) {
	c.Charged, c.At = true, v.At
	used := p.state.Commit(c, v.Now, v.At)
	if c.Mode == decide.Trigger && used >= c.Limit && used-c.Cost < c.Limit {
		c.Fired = used
	}
	if p.entry == nil {
		p.shard.add(p.hash, prefix, c, p.state)
	}
}

// lock locks the shards of a call in ascending order, so that no two calls wait for each other.
func (s *Store) lock(call *decide.Call, places []place) (_ []place, locked uint64) {
	places = slices.Grow(places, len(call.Claims))[:len(call.Claims)]
	for i := range places {
		p, c := &places[i], &call.Claims[i]
		hash := maphash.String(s.seed, c.Subject)
		n := hash % shards
		p.shard, p.hash = &s.shards[n], hash^c.Rule.Hash
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

// sweep drops all that has expired.
func (s *Store) sweep(now int64) {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.Lock()
		s.count.Add(-shard.expire(now, len(shard.queue)))
		shard.Unlock()
	}
}
