package memory

import (
	"context"
	"slices"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// work is reusable memory for one call at a time.
type work struct {
	calls   uint32 // the number of calls so far
	locked  uint64 // the shards of the call, as a set
	targets []target
	cells   []*engine.Cell
}

// clear prepares the memory for the next call.
func (w *work) clear() {
	if len(w.targets) > 0 {
		clear(w.targets)
		clear(w.cells)
		w.targets, w.cells = w.targets[:0], w.cells[:0]
	}
}

// admit charges the claims if all of them are simple, and reports whether it did. The call must be neither a Peek nor have Report, UpTo or
// Refused.
func admit(keys []key, claims []engine.Claim, now int64) bool {
	for i := range keys {
		e := keys[i].entry
		if e == nil || !e.record.Admits(&claims[i], now) || slices.ContainsFunc(keys[:i], func(k key) bool { return k.entry == e }) {
			return false
		}
	}
	for i := range keys {
		keys[i].entry.record.Charge(&claims[i], now)
	}
	return true
}

// target is the record on which a claim is decided. If there is no entry for it, keep adds one, unless there is nothing to keep.
type target struct {
	*engine.Record               // of the entry, or &fresh
	fresh          engine.Record // used if there is no entry
	unpacked       engine.Unpacked
	size           int64 // the record's size before the call
}

// unpack sets the targets and cells of all claims.
func (w *work) unpack(keys []key) {
	w.targets = slices.Grow(w.targets, len(keys))[:len(keys)]
	for i := range w.targets {
		p, rule := &w.targets[i], keys[i].rule
		if e := keys[i].entry; e != nil {
			p.Record = &e.record
		} else {
			p.fresh = engine.NewRecord(rule)
			p.Record = &p.fresh
		}
		p.size = p.Size()
		w.cells = append(w.cells, p.Unpack(rule, &p.unpacked))
	}
}

// step decides a call whose shards are locked.
func (s *Store) step(call *engine.Call, keys []key, w *work, now int64) (engine.Verdict, error) {
	w.unpack(keys)
	entries, bytes := int64(0), int64(0)
	if !call.Peek {
		entries, bytes = w.needs(call, keys, now)
	}
	if entries+bytes > 0 && !s.bound.reserve(entries, bytes) {
		call.Peek = true
		v := call.Decide(w.cells, now)
		if call.Peek = false; v.Admitted {
			return v, ErrFull
		}
		entries, bytes = 0, 0
	}
	v := call.Decide(w.cells, now)
	if !call.Peek {
		s.keep(keys, w, now, entries, bytes)
	}
	return v, nil
}

// needs returns how many entries and bytes a call may add at most.
func (w *work) needs(call *engine.Call, keys []key, now int64) (entries, bytes int64) {
	for i := range w.targets {
		e, b := w.need(i, &call.Claims[i], &keys[i], now)
		entries, bytes = entries+e, bytes+b
	}
	return entries, bytes
}

// need returns how many entries and bytes a charge of the claim's cost may add.
func (w *work) need(i int, c *engine.Claim, k *key, now int64) (entries, bytes int64) {
	bytes = w.cells[i].State.Grows(c, now)
	if k.entry == nil {
		entries = 1
		bytes += entryBytes + textBytes(k.subject) + w.targets[i].size
	}
	return entries, bytes
}

// keep stores the cells of a call, and adds their entries and bytes to the bound instead of those that were reserved.
func (s *Store) keep(keys []key, w *work, now, entries, bytes int64) {
	entries, bytes = -entries, -bytes
	for i := range w.targets {
		p := &w.targets[i]
		p.Pack(&p.unpacked)
		if keys[i].entry != nil {
			bytes += p.Size() - p.size
			s.shards[keys[i].shard].expiresAt(p.Expiry(keys[i].rule))
		}
	}
	for i := range w.targets { // a second loop, because adding entries may move others
		k, p := &keys[i], &w.targets[i]
		if k.entry == nil && p.fresh.Expiry(k.rule) > now {
			shard := &s.shards[k.shard]
			entries++
			bytes += shard.add(k, p.fresh)
			removed, freed := shard.expire(now, 4)
			entries, bytes = entries-removed, bytes-freed
		}
	}
	s.bound.add(entries, bytes)
}

// Adjust implements engine.Store.
func (s *Store) Adjust(_ context.Context, call *engine.Call) error {
	keys := s.keys(nil, call)
	w := s.lock(keys)
	defer s.unlock(w)
	now := s.clock.now()
	w.unpack(keys)
	entries, bytes := int64(0), int64(0)
	for i := range keys {
		c := call.Claims[i]
		if c.Delta <= 0 || keys[i].entry != nil && !c.Rule.Kind.KeepsTimes() {
			continue // what is there does not grow
		}
		if c.Cost = c.Delta; call.Change >= engine.Pauses {
			c.Cost = 0
		}
		e, b := w.need(i, &c, &keys[i], now)
		entries, bytes = entries+e, bytes+b
	}
	if entries+bytes > 0 && !s.bound.reserve(entries, bytes) {
		return ErrFull
	}
	call.Adjust(w.cells, now)
	s.keep(keys, w, now, entries, bytes)
	s.drop(keys, func(e *entry) bool { return e.record.Expiry(e.rule) <= now })
	return nil
}

// Reset implements engine.Store.
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

// drop removes the entries of a call for which goes returns true.
func (s *Store) drop(keys []key, goes func(*entry) bool) {
	for i := range keys {
		shard := &s.shards[keys[i].shard]
		if e, n := shard.find(&keys[i]); e != nil && goes(e) { // found again, because removing an entry may have moved others
			bytes := shard.remove(n)
			s.bound.add(-1, -bytes)
		}
	}
}
