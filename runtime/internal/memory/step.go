package memory

import (
	"context"
	"slices"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// work is memory for one call at a time.
type work struct {
	targets []target
	cells   []*engine.Cell
}

// clear makes the memory ready for the next call.
func (w *work) clear() {
	clear(w.targets)
	clear(w.cells)
	w.targets, w.cells = w.targets[:0], w.cells[:0]
}

// target is the entry that a claim is decided on. If there is none, one is added if the call leaves something to keep.
type target struct {
	key
	shard    *shard
	entry    *entry        // nil as long as there is none
	fresh    engine.Record // then
	unpacked engine.Unpacked
	size     int64 // of the record before the call
}

func (p *target) record() *engine.Record {
	if p.entry != nil {
		return &p.entry.record
	}
	return &p.fresh
}

// unpack fills in the cells of all targets.
func (w *work) unpack() {
	for i := range w.targets {
		p := &w.targets[i]
		if p.entry == nil {
			p.fresh = engine.NewRecord(p.rule)
		}
		p.size = p.record().Size()
		w.cells = append(w.cells, p.record().Unpack(p.rule, &p.unpacked))
	}
}

// step decides a call whose shards are locked.
func (s *Store) step(call *engine.Call, w *work, now int64) (engine.Verdict, error) {
	w.unpack()
	keys, bytes := int64(0), int64(0)
	if !call.Peek {
		keys, bytes = w.needs(call, now)
	}
	if keys+bytes > 0 && !s.bound.reserve(keys, bytes) {
		dry := *call
		dry.Claims, dry.Peek = slices.Clone(call.Claims), true
		if v := dry.Decide(w.cells, now); v.Admitted {
			return v, ErrFull
		}
		keys, bytes = 0, 0
	}
	v := call.Decide(w.cells, now)
	if !call.Peek {
		s.keep(w, now, keys, bytes)
	}
	return v, nil
}

// needs returns how many entries and bytes a call may add.
func (w *work) needs(call *engine.Call, now int64) (keys, bytes int64) {
	for i := range w.targets {
		p := &w.targets[i]
		bytes += w.cells[i].State.Grows(&call.Claims[i], now)
		if p.entry == nil {
			keys++
			bytes += entryBytes + textBytes(p.subject) + p.size
		}
	}
	return keys, bytes
}

// keep keeps what a call made of its cells, in place of what was reserved.
func (s *Store) keep(w *work, now, keys, bytes int64) {
	keys, bytes = -keys, -bytes
	for i := range w.targets {
		p := &w.targets[i]
		p.record().Pack(&p.unpacked)
		if p.entry != nil {
			bytes += p.record().Size() - p.size
		}
	}
	for i := range w.targets { // adding entries may move those that there are
		p := &w.targets[i]
		if p.entry == nil && p.fresh.Expiry(p.rule) > now {
			keys++
			bytes += p.shard.add(&p.key, p.fresh)
			removed, freed := p.shard.expire(now, 4, s.hash)
			keys, bytes = keys-removed, bytes-freed
		}
	}
	s.bound.add(keys, bytes)
}

// Adjust implements engine.Store.
func (s *Store) Adjust(_ context.Context, call *engine.Call) error {
	return s.locked(call, func(w *work, now int64) error {
		w.unpack()
		keys, bytes := int64(0), int64(0)
		for i := range w.targets {
			if p := &w.targets[i]; p.entry == nil && call.Claims[i].Delta > 0 {
				keys, bytes = keys+1, bytes+entryBytes+textBytes(p.subject)+p.size
			}
		}
		if keys > 0 && !s.bound.reserve(keys, bytes) {
			return ErrFull
		}
		call.Adjust(w.cells, now)
		s.keep(w, now, keys, bytes)
		s.drop(w, func(e *entry) bool { return e.record.Expiry(e.rule) <= now })
		return nil
	})
}

// Reset implements engine.Store.
func (s *Store) Reset(_ context.Context, call *engine.Call) (found int, err error) {
	return found, s.locked(call, func(w *work, now int64) error {
		for i := range w.targets {
			if e := w.targets[i].entry; e != nil && e.record.Expiry(e.rule) > now {
				found++
			}
		}
		s.drop(w, func(*entry) bool { return true })
		return nil
	})
}

// drop removes the entries of a call that are to go.
func (s *Store) drop(w *work, goes func(*entry) bool) {
	for i := range w.targets {
		p := &w.targets[i]
		if e, n := p.shard.find(&p.key); e != nil && goes(e) { // removing one may have moved the others
			bytes := p.shard.remove(n, s.hash)
			s.bound.add(-1, -bytes)
		}
	}
}
