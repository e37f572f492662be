package memory

import (
	"context"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// Look implements backend.Store.
func (s *Store) Look(_ context.Context, call *engine.Call) (engine.Looked, error) {
	hashes, x := s.lock(call, nil)
	defer s.unlock(x)
	s.collect(call, hashes, x)
	return call.Claims[0].Look(x.cells[0], s.clock.now()), nil
}

// Blocks implements backend.Store. It locks one part of the table at a time.
func (s *Store) Blocks(_ context.Context, prefix string, most int) (all []backend.Block, whole bool, err error) {
	for i := range s.shards {
		if all, whole = s.blocksIn(&s.shards[i], prefix, most, all); !whole {
			break
		}
	}
	return all, whole, nil
}

// blocksIn appends the blocks of one part of the table, and reports whether there are not more than most.
func (s *Store) blocksIn(shard *shard, prefix string, most int, all []backend.Block) ([]backend.Block, bool) {
	shard.Lock()
	defer shard.Unlock()
	now := s.clock.now()
	for i := range shard.count {
		e := shard.at(i)
		x := e.cell.Rare
		if x == nil || x.Until <= now || e.space != s.space || e.prefix != prefix {
			continue
		}
		if len(all) == most {
			return all, false
		}
		all = append(all, backend.Block{
			Rule: e.rule.Name, Tag: e.rule.Tag, Subject: e.subject, Since: time.UnixMicro(x.Until - x.Length), Until: time.UnixMicro(x.Until),
		})
	}
	return all, true
}
