package memory

import (
	"strings"
	"sync"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// shard is a part of the store, with a lock of its own. Its entries stand in pages without gaps; the last one takes the place of one
// that is removed.
type shard struct {
	sync.Mutex
	cursor int // the entry that expire looks at next
	count  int // entries
	pages  [][]entry
	index  index
	groups map[groupName]*group
	work   work // of the call that has locked this shard first

	_ [64]byte // so that the locks of two shards do not share a cache line
}

// entry is what is kept of one rule for one subject.
type entry struct {
	*group
	subject string
	record  engine.Record
}

// groupName tells the groups of a shard apart.
type groupName struct {
	space             *space
	prefix, name, tag string
	kind              engine.Kind
}

// group is what the entries of one rule in a shard share. Of equal rules it has the one that was used first.
type group struct {
	space   *space
	prefix  string
	rule    *engine.Rule
	entries int
}

// key names an entry.
type key struct {
	space   *space
	prefix  string
	rule    *engine.Rule
	subject string
	shard   uint32
	hash    uint32
}

func (e *entry) is(k *key) bool {
	return e.subject == k.subject && e.space == k.space && e.prefix == k.prefix &&
		(e.rule == k.rule || e.rule.Name == k.rule.Name && e.rule.Tag == k.rule.Tag && e.rule.Kind == k.rule.Kind)
}

// perPage entries of 56 bytes fill a page of 4 kB.
const perPage = 73

func (s *shard) at(i int) *entry { return &s.pages[i/perPage][i%perPage] }

// find returns an entry and its number, or nil. The entry stays where it is until one is added or removed.
func (s *shard) find(k *key) (*entry, int) {
	for i := s.index.home(k.hash); ; i = s.index.next(i) {
		n, hash := s.index.at(i)
		if n < 0 {
			return nil, -1
		}
		if hash == k.hash {
			if e := s.at(n); e.is(k) {
				return e, n
			}
		}
	}
}

// entryBytes is what an entry takes besides its text and what its record refers to: its part of a page and of the index.
const entryBytes = 56 + 14

// groupBytes is what a group takes besides its texts.
const groupBytes = 256

func textBytes(text string) int64 { return int64(len(text)+15) &^ 15 }

// size returns about how many bytes an entry takes.
func (e *entry) size() int64 { return entryBytes + textBytes(e.subject) + e.record.Size() }

// add keeps a new record, and returns the bytes that this takes.
func (s *shard) add(k *key, r engine.Record) (bytes int64) {
	g, bytes := s.enter(k)
	if s.count == len(s.pages)*perPage {
		s.pages = append(s.pages, nil)
	}
	page := &s.pages[s.count/perPage]
	if len(s.pages) > 1 && *page == nil {
		*page = make([]entry, 0, perPage)
	}
	*page = append(*page, entry{g, strings.Clone(k.subject), r})
	s.index.put(k.hash, s.count)
	s.count++
	return bytes + s.at(s.count-1).size()
}

// enter counts one more entry of the group of a key. It returns the group, and the bytes that it takes if it is new.
func (s *shard) enter(k *key) (g *group, bytes int64) {
	name := groupName{k.space, k.prefix, k.rule.Name, k.rule.Tag, k.rule.Kind}
	if g = s.groups[name]; g == nil {
		if s.groups == nil {
			s.groups = make(map[groupName]*group)
		}
		g = &group{space: k.space, prefix: k.prefix, rule: k.rule}
		s.groups[name], bytes = g, groupBytes
	}
	g.entries++
	return g, bytes
}

// remove forgets the i-th entry, and returns the bytes that it took.
func (s *shard) remove(i int, hash hasher) (bytes int64) {
	e, last := s.at(i), s.at(s.count-1)
	bytes = e.size()
	s.index.remove(hash.of(e), i)
	if e.entries--; e.entries == 0 {
		delete(s.groups, groupName{e.space, e.prefix, e.rule.Name, e.rule.Tag, e.rule.Kind})
		bytes += groupBytes
	}
	if e != last {
		s.index.replace(hash.of(last), s.count-1, i)
		*e = *last
	}
	*last = entry{}
	s.count--
	page := len(s.pages) - 1
	if s.pages[page] = s.pages[page][:s.count-page*perPage]; len(s.pages[page]) == 0 {
		s.pages[page] = nil
		s.pages = s.pages[:page]
	}
	return bytes
}

// mostRounds bounds how much one call removes.
const mostRounds = 16

// expire looks at the next n entries, and as Redis does goes on while more than a quarter of them had expired. It removes those that
// had, and returns how many there were and the bytes that they took.
func (s *shard) expire(now int64, n int, hash hasher) (removed, bytes int64) {
	found := n
	for round := 0; round < mostRounds && 4*found > n; round++ {
		found = 0
		for range min(n, s.count) {
			if s.cursor >= s.count {
				s.cursor = 0
			}
			if e := s.at(s.cursor); e.record.Expiry(e.rule) > now {
				s.cursor++
				continue
			}
			bytes += s.remove(s.cursor, hash)
			found++
		}
		removed += int64(found)
	}
	return removed, bytes
}
