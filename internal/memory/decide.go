package memory

import (
	"context"
	"hash/maphash"
	"math/bits"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// Decide implements backend.Store.
func (s *Store) Decide(_ context.Context, call *engine.Call) (engine.Verdict, error) {
	v, err := s.decide(call)
	if err != nil && s.makeRoom(v.Now) {
		return s.decide(call)
	}
	return v, err
}

func (s *Store) decide(call *engine.Call) (engine.Verdict, error) {
	var few [fewClaims]uint64
	hashes, x := s.lock(call, few[:])
	defer s.unlock(x)
	now := s.clock.now() // with the locks held, so that time does not go back from one call to the next
	s.collect(call, hashes, x)
	if call.Peek || x.plain {
		return call.Decide(x.cells, now), nil
	}
	keys, bytes := int64(0), int64(0)
	for i := range x.cells {
		k, b := x.growth(i, &call.Claims[i], now)
		keys, bytes = keys+k, bytes+b
	}
	if keys+bytes > 0 && !s.bound.reserve(keys, bytes) { // only an admission needs the room
		call.Peek = true
		v := call.Decide(x.cells, now)
		if call.Peek = false; v.Admitted {
			return v, ErrFull
		}
		keys, bytes = 0, 0 // a refusal needs no room
	}
	v := call.Decide(x.cells, now)
	s.keep(call, hashes, x, now, keys, bytes)
	return v, nil
}

// fewClaims is the largest number of claims whose hashes need no allocation.
const fewClaims = 4

// lock locks the shards of a call, in ascending order, so that calls cannot deadlock. It returns the hashes of the subjects, in few if that is
// enough. All counts of a subject are in one shard. The hash has a random seed, so nobody can choose subjects that collide.
func (s *Store) lock(call *engine.Call, few []uint64) (hashes []uint64, x *scratch) {
	if len(call.Claims) > len(few) {
		few = make([]uint64, len(call.Claims))
	}
	hashes = few[:len(call.Claims)]
	locked := uint64(0)
	for i := range hashes {
		if i > 0 && call.Claims[i].Subject == call.Claims[i-1].Subject {
			hashes[i] = hashes[i-1]
			continue
		}
		hashes[i] = maphash.String(s.seed, call.Claims[i].Subject)
		locked |= 1 << (hashes[i] % shards)
	}
	locked = max(locked, 1) // a call without claims also needs a shard
	for m := locked; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].Lock()
	}
	x = &s.shards[bits.TrailingZeros64(locked)].scratch
	x.locked = locked
	return hashes, x
}

// place returns the shard of a subject, by its hash, and the hash of its count under a rule. The prefix is not hashed: few stores have several
// prefixes.
func (s *Store) place(hash uint64, r *engine.Rule) (*shard, uint32) {
	return &s.shards[hash%shards], uint32((hash + r.Hash()) >> 32)
}

// unlock unlocks the shards of a call. Now and then it also removes some expired entries from the shard whose turn it is.
func (s *Store) unlock(x *scratch) {
	x.calls++
	due := x.calls%callsPerSweep == 0
	for m := x.locked; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].Unlock()
	}
	if due {
		s.expire(&s.shards[s.sweeps.Add(1)%shards])
	}
}

// callsPerSweep is the number of calls with the same lowest shard after which another shard is swept.
const callsPerSweep = 64

// collect collects the cells of a call. A claim without an entry gets a fresh cell. keep adds an entry for that, unless there is nothing to keep.
func (s *Store) collect(call *engine.Call, hashes []uint64, x *scratch) {
	if len(hashes) > len(x.fresh) {
		x.cells, x.fresh = make([]*engine.Cell, len(hashes)), make([]engine.Cell, len(hashes))
	}
	x.cells, x.bytes, x.plain = x.cells[:len(hashes)], 0, true
	for i, hash := range hashes {
		c := &call.Claims[i]
		shard, hash := s.place(hash, c.Rule)
		if e, _ := shard.find(s.space, call.Prefix, c, hash); e != nil {
			x.cells[i] = &e.cell
			x.bytes += e.cell.Size()
			x.plain = x.plain && e.cell.Rare == nil
			continue
		}
		x.fresh[i] = engine.NewCell(c.Rule)
		x.cells[i], x.plain = &x.fresh[i], false
	}
}

func (x *scratch) isFresh(i int) bool { return x.cells[i] == &x.fresh[i] }

// growth returns by how many entries and bytes a claim can let the store grow.
func (x *scratch) growth(i int, c *engine.Claim, now int64) (keys, bytes int64) {
	cell := x.cells[i]
	bytes = cell.Grows(c, now)
	if x.isFresh(i) {
		return 1, bytes + groupBytes + entryBytes + textBytes(c.Subject) + cell.Size() // the group may be new
	}
	return 0, bytes
}

// keep notes what became of the cells of a call. It adds their keys and bytes to the bound, and takes off those that were reserved.
func (s *Store) keep(call *engine.Call, hashes []uint64, x *scratch, now, keys, bytes int64) {
	keys, bytes = -keys, -bytes-x.bytes
	for i, cell := range x.cells {
		if !x.isFresh(i) {
			bytes += cell.Size()
			s.shards[hashes[i]%shards].expiresAt(cell.Expiry(call.Claims[i].Rule))
		}
	}
	for i := range x.cells { // a second loop, because adding entries may move others
		c := &call.Claims[i]
		if !x.isFresh(i) || x.fresh[i].Expiry(c.Rule) <= now {
			continue
		}
		shard, hash := s.place(hashes[i], c.Rule)
		bytes += shard.add(s.space, call.Prefix, c, hash, x.fresh[i])
		x.fresh[i] = engine.Cell{} // the shard must not keep what hangs on a cell after its entry is gone
		removed, freed := shard.expire(now, 4)
		keys, bytes = keys+1-removed, bytes-freed
	}
	s.bound.count(keys, bytes)
}

// Adjust implements backend.Store.
func (s *Store) Adjust(_ context.Context, call *engine.Call) error {
	now, err := s.adjust(call)
	if err != nil && s.makeRoom(now) {
		_, err = s.adjust(call)
	}
	return err
}

// adjust adjusts a call once. It returns the time at which it did.
func (s *Store) adjust(call *engine.Call) (now int64, err error) {
	hashes, x := s.lock(call, nil)
	defer s.unlock(x)
	now = s.clock.now()
	s.collect(call, hashes, x)
	keys, bytes := int64(0), int64(0)
	for i := range x.cells {
		c, pauses := call.Claims[i], call.Change >= engine.Pauses
		mayGrow := !pauses && (c.Rule.Kind.KeepsTimes() || c.Rule.Kind == engine.Amounts)
		if c.Delta <= 0 || !x.isFresh(i) && !mayGrow {
			continue
		}
		if c.Cost = c.Delta; pauses {
			c.Cost = 0
		}
		k, b := x.growth(i, &c, now)
		keys, bytes = keys+k, bytes+b
	}
	if keys+bytes > 0 && !s.bound.reserve(keys, bytes) {
		return now, ErrFull
	}
	for i, cell := range x.cells {
		if grows := cell.FreeGrows(&call.Claims[i], now); s.bound.reserve(0, grows) {
			bytes += grows
		} else {
			call.Claims[i].Delta = 0 // the place stays charged for good, as if there were too many free places
		}
	}
	call.Adjust(x.cells, now)
	s.keep(call, hashes, x, now, keys, bytes)
	s.drop(call, hashes, func(e *entry) bool { return e.cell.Expiry(e.rule) <= now })
	return now, nil
}

// Reset implements backend.Store.
func (s *Store) Reset(_ context.Context, call *engine.Call) (found int, err error) {
	hashes, x := s.lock(call, nil)
	defer s.unlock(x)
	now := s.clock.now()
	s.drop(call, hashes, func(e *entry) bool {
		if e.cell.Expiry(e.rule) > now {
			found++
		}
		return true
	})
	return found, nil
}

// drop removes the entries of a call for which removes returns true.
func (s *Store) drop(call *engine.Call, hashes []uint64, removes func(*entry) bool) {
	for i := range call.Claims {
		c := &call.Claims[i]
		shard, hash := s.place(hashes[i], c.Rule)
		if e, n := shard.find(s.space, call.Prefix, c, hash); e != nil && removes(e) {
			s.bound.count(-1, -shard.remove(n))
		}
	}
}
