package memory

import (
	"context"
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// work is what a shard has for the calls of which it is the lowest shard, one at a time.
type work struct {
	calls    uint32 // how many such calls there were
	locked   uint64 // the shards of the call, as a set
	unpacked []engine.Unpacked
}

// Decide implements backend.Store.
func (s *Store) Decide(_ context.Context, call *engine.Call) (engine.Verdict, error) {
	v, err := s.decide(call)
	if err != nil && s.makeRoom(v.Now) {
		return s.decide(call)
	}
	return v, err
}

func (s *Store) decide(call *engine.Call) (engine.Verdict, error) {
	var few [fewKeys]key
	keys := s.keys(few[:], call)
	w := s.lock(keys)
	defer s.unlock(w)
	now := s.clock.now() // with the locks held, so that time does not go back from one call to the next
	var fewCells [fewKeys]*engine.Cell
	cells, entries, bytes := s.unpack(fewCells[:0], call, keys, w, now)
	if call.Peek {
		return call.Decide(cells, now), nil
	}
	if entries+bytes > 0 && !s.bound.reserve(entries, bytes) { // only an admission needs the room
		call.Peek = true
		v := call.Decide(cells, now)
		if call.Peek = false; v.Admitted {
			return v, ErrFull
		}
		entries, bytes = 0, 0 // a refusal needs no room
	}
	v := call.Decide(cells, now)
	s.pack(keys, w, now, entries, bytes)
	return v, nil
}

// fewKeys is the largest number of claims whose keys and cells need no allocation.
const fewKeys = 4

// keys returns the keys of a call's claims. It uses the memory of few if that is enough. The hash has a random seed, so nobody can choose
// subjects that collide. All counts of a subject are in one shard. The prefix is not hashed: few stores have several prefixes.
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

// lock locks the shards of the keys of a call. It locks in ascending order, so that calls cannot deadlock.
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

// unlock unlocks the shards of a call. Now and then it also removes some expired entries from the shard whose turn it is.
func (s *Store) unlock(w *work) {
	w.calls++
	due := w.calls%callsPerSweep == 0
	for m := w.locked; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].Unlock()
	}
	if due {
		s.expire(&s.shards[s.sweeps.Add(1)%shards])
	}
}

// callsPerSweep is the number of calls with the same lowest shard after which another shard is swept.
const callsPerSweep = 64

// unpack finds the entries of a call. It returns the cells of its claims, in the memory of few if that is enough, and by how many entries and
// bytes the store can grow at most. A key without an entry gets a new record. pack adds an entry for that, unless there is nothing to keep.
func (s *Store) unpack(few []*engine.Cell, call *engine.Call, keys []key, w *work, now int64) (cells []*engine.Cell, entries, bytes int64) {
	if len(w.unpacked) < len(keys) {
		w.unpacked = make([]engine.Unpacked, len(keys))
	}
	for i := range keys {
		k, c, u := &keys[i], &call.Claims[i], &w.unpacked[i]
		if k.entry, _ = s.shards[k.shard].find(k); k.entry != nil {
			k.record = &k.entry.record
		} else {
			u.New = engine.NewRecord(k.rule)
			k.record = &u.New
		}
		cell := k.record.Unpack(k.rule, u)
		few = append(few, cell)
		e, b := k.growth(c, now)
		entries, bytes = entries+e, bytes+b
	}
	return few, entries, bytes
}

// growth returns by how many entries and bytes the claim can let the store grow.
func (k *key) growth(c *engine.Claim, now int64) (entries, bytes int64) {
	bytes = k.record.Grows(c, now)
	if k.entry == nil {
		entries = 1
		bytes += groupBytes + entryBytes + textBytes(k.subject) + k.record.Size() // the group may be new
	}
	return entries, bytes
}

// pack stores the cells of a call. It adds their entries and bytes to the bound, and takes off those that were reserved: entries and bytes.
func (s *Store) pack(keys []key, w *work, now, entries, bytes int64) {
	entries, bytes = -entries, -bytes
	for i := range keys {
		k := &keys[i]
		grown, expiry := k.record.Pack(k.rule, &w.unpacked[i])
		if k.entry != nil {
			bytes += grown
			s.shards[k.shard].expiresAt(expiry)
		}
	}
	for i := range keys { // a second loop, because adding entries may move others
		k := &keys[i]
		if k.entry == nil && k.record.Expiry(k.rule) > now {
			shard := &s.shards[k.shard]
			entries++
			bytes += shard.add(k, *k.record)
			*k.record = engine.Record{} // the shard must not keep a cell after its entry is gone
			removed, freed := shard.expire(now, 4)
			entries, bytes = entries-removed, bytes-freed
		}
	}
	s.bound.add(entries, bytes)
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
	keys := s.keys(nil, call)
	w := s.lock(keys)
	defer s.unlock(w)
	now = s.clock.now()
	cells, _, _ := s.unpack(nil, call, keys, w, now)
	entries, bytes := int64(0), int64(0)
	for i := range keys {
		c, pauses := call.Claims[i], call.Change >= engine.Pauses
		mayGrow := !pauses && (c.Rule.Kind.KeepsTimes() || c.Rule.Kind == engine.Amounts)
		if c.Delta <= 0 || keys[i].entry != nil && !mayGrow {
			continue
		}
		if c.Cost = c.Delta; pauses {
			c.Cost = 0
		}
		e, b := keys[i].growth(&c, now)
		entries, bytes = entries+e, bytes+b
	}
	if entries+bytes > 0 && !s.bound.reserve(entries, bytes) {
		return now, ErrFull
	}
	for i := range keys {
		if grows := cells[i].FreeGrows(&call.Claims[i], now); s.bound.reserve(0, grows) {
			bytes += grows
		} else {
			call.Claims[i].Delta = 0 // the place stays charged for good, as if there were too many free places
		}
	}
	call.Adjust(cells, now)
	s.pack(keys, w, now, entries, bytes)
	s.drop(keys, func(e *entry) bool { return e.record.Expiry(e.rule) <= now })
	return now, nil
}

// Reset implements backend.Store.
func (s *Store) Reset(_ context.Context, call *engine.Call) (found int, err error) {
	keys := s.keys(nil, call)
	w := s.lock(keys)
	defer s.unlock(w)
	now := s.clock.now()
	s.drop(keys, func(e *entry) bool {
		if e.record.Expiry(e.rule) > now {
			found++
		}
		return true
	})
	return found, nil
}

// drop removes the entries of a call for which removes returns true.
func (s *Store) drop(keys []key, removes func(*entry) bool) {
	for i := range keys {
		shard := &s.shards[keys[i].shard]
		if e, n := shard.find(&keys[i]); e != nil && removes(e) { // found again, because removing an entry may have moved others
			bytes := shard.remove(n)
			s.bound.add(-1, -bytes)
		}
	}
}
