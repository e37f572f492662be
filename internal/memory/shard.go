package memory

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// shard is a part of the table, with a lock of its own. Its entries are in pages, without gaps: the last entry replaces one that is removed. A
// reference to an entry is its number plus 1; 0 means none.
type shard struct {
	sync.Mutex
	soonest atomic.Int64 // no entry expires before this time; written with the lock held
	seen    int64        // no entry that expire has looked at in its present round, or that changed in that round, expires before this time
	cursor  int          // the entry that expire looks at next
	count   int          // entries
	pages   [][]entry
	heads   []uint32 // by hash: the first entry of each chain. The length is a power of two
	groups  map[groupName]*group
	scratch scratch

	_ [64]byte // keeps the locks of two shards in different cache lines
}

// scratch is memory that a shard lends to the call of which it is the lowest shard, while it is locked.
type scratch struct {
	calls  uint32 // how many such calls there were
	locked uint64 // the shards of the call, as a set
	plain  bool   // nothing rare hangs on a cell, and all are in entries: a decision does not change their sizes, and lets none expire sooner
	bytes  int64  // the size of the cells in entries, before the call
	cells  []*engine.Cell
	fresh  []engine.Cell // the cells of claims without an entry
}

// entry holds the count of one rule for one subject.
type entry struct {
	*group
	subject string
	cell    engine.Cell
	hash    uint32
	next    uint32 // the next entry in the chain
}

// group holds what the entries of one rule in a shard share. Its rule is the first of several equal ones that was used.
type group struct {
	space   *space
	prefix  string
	rule    *engine.Rule
	entries int
}

// groupName identifies a group in a shard.
type groupName struct {
	space             *space
	prefix, name, tag string
	states            string // the Lua file of the rule's kind: kinds of the same file share their states
}

func nameOf(space *space, prefix string, r *engine.Rule) groupName {
	return groupName{space, prefix, r.Name, r.Tag, r.Kind.Row().Lua}
}

// is reports whether an entry is that of a claim.
func (e *entry) is(space *space, prefix string, c *engine.Claim) bool {
	g := e.group
	return e.subject == c.Subject && (g.rule == c.Rule && g.space == space && g.prefix == prefix || g.isLike(space, prefix, c.Rule))
}

// isLike reports whether another rule counts in the same group.
func (g *group) isLike(space *space, prefix string, r *engine.Rule) bool {
	return nameOf(g.space, g.prefix, g.rule) == nameOf(space, prefix, r)
}

// perPage is the number of entries in a page. With 72 bytes for each and 8 for the garbage collector they fill 4 kB.
const perPage = 56

func (s *shard) at(i int) *entry { return &s.pages[uint(i)/perPage][uint(i)%perPage] }

// fewestHeads is the number of chains in an empty shard.
const fewestHeads = 8

func (s *shard) start() {
	s.chain(fewestHeads)
	s.soonest.Store(noExpiry)
	s.seen = noExpiry
}

func (s *shard) head(hash uint32) *uint32 { return &s.heads[int(hash)&(len(s.heads)-1)] }

// find returns the entry of a claim and its number, or nil. The pointer is valid until an entry is added or removed.
func (s *shard) find(space *space, prefix string, c *engine.Claim, hash uint32) (*entry, int) {
	for n := *s.head(hash); n > 0; {
		e := s.at(int(n - 1))
		if e.hash == hash && e.is(space, prefix, c) {
			return e, int(n - 1)
		}
		n = e.next
	}
	return nil, -1
}

// link returns the reference to the i-th entry: in the head of its chain, or in the entry before it.
func (s *shard) link(i int) *uint32 {
	link := s.head(s.at(i).hash)
	for *link != uint32(i+1) {
		link = &s.at(int(*link - 1)).next
	}
	return link
}

// chain distributes all entries over n chains.
func (s *shard) chain(n int) {
	s.heads = make([]uint32, n)
	for i := range s.count {
		e := s.at(i)
		head := s.head(e.hash)
		e.next, *head = *head, uint32(i+1)
	}
}

// entryBytes is the size of an entry in its page and in heads. The text and what the cell refers to come on top.
const entryBytes = 72 + 6

// groupBytes is the size of a group without its texts.
const groupBytes = 256

func textBytes(text string) int64 { return int64(len(text)+15) &^ 15 }

// size returns about how many bytes an entry takes.
func (e *entry) size() int64 { return entryBytes + textBytes(e.subject) + e.cell.Size() }

// add adds an entry with a cell, and returns the bytes that it takes.
func (s *shard) add(space *space, prefix string, c *engine.Claim, hash uint32, cell engine.Cell) (bytes int64) {
	g, bytes := s.enter(space, prefix, c.Rule)
	if s.count == len(s.pages)*perPage {
		s.pages = append(s.pages, nil)
	}
	page := &s.pages[s.count/perPage]
	if len(s.pages) > 1 && *page == nil {
		*page = make([]entry, 0, perPage)
	}
	head := s.head(hash)
	*page = append(*page, entry{g, strings.Clone(c.Subject), cell, hash, *head})
	s.count++
	s.expiresAt(cell.Expiry(g.rule))
	*head = uint32(s.count)
	if bytes += s.at(s.count - 1).size(); s.count > len(s.heads) {
		s.chain(2 * len(s.heads))
	}
	return bytes
}

// enter adds one to the number of entries in the group of a rule. It returns the group, and the bytes of the group if that is new.
func (s *shard) enter(space *space, prefix string, r *engine.Rule) (g *group, bytes int64) {
	name := nameOf(space, prefix, r)
	if g = s.groups[name]; g == nil {
		if s.groups == nil {
			s.groups = make(map[groupName]*group)
		}
		g = &group{space: space, prefix: prefix, rule: r}
		s.groups[name], bytes = g, groupBytes
	}
	g.entries++
	return g, bytes
}

// remove removes the i-th entry, and returns the bytes that it took.
func (s *shard) remove(i int) (bytes int64) {
	e, last := s.at(i), s.at(s.count-1)
	bytes = e.size()
	if e.entries--; e.entries == 0 {
		delete(s.groups, nameOf(e.space, e.prefix, e.rule))
		bytes += groupBytes
	}
	*s.link(i) = e.next
	if e != last {
		*s.link(s.count - 1) = uint32(i + 1)
		*e = *last
		s.seen = min(s.seen, e.cell.Expiry(e.rule))
	}
	*last = entry{}
	s.count--
	page := len(s.pages) - 1
	if s.pages[page] = s.pages[page][:s.count-page*perPage]; len(s.pages[page]) == 0 {
		s.pages[page] = nil
		s.pages = s.pages[:page]
	}
	if 8*s.count < len(s.heads) && len(s.heads) > fewestHeads {
		s.chain(len(s.heads) / 2)
	}
	return bytes
}

// noExpiry is later than any expiry.
const noExpiry = math.MaxInt64

// expiresAt notes when an entry expires. The entry is new, or may expire sooner than before.
func (s *shard) expiresAt(at int64) {
	if at < s.seen {
		s.seen = at
		s.soonest.Store(min(s.soonest.Load(), at))
	}
}

// newRound begins a new round, with the first entry, after expire has looked at the last one. By then seen holds for all entries.
func (s *shard) newRound() {
	if s.cursor >= s.count {
		s.cursor = 0
		s.soonest.Store(s.seen)
		s.seen = noExpiry
	}
}

// mostRounds bounds the work of expire in one call.
const mostRounds = 16

// expire removes the expired ones of the next n entries. Like Redis, it goes on while more than a quarter of them had expired. It returns how
// many entries it removed, and the bytes that they took. If no entry can have expired, it looks at none.
func (s *shard) expire(now int64, n int) (removed, bytes int64) {
	found := n
	for round := 0; round < mostRounds && 4*found > n && s.soonest.Load() <= now; round++ {
		found = 0
		for range min(n, s.count) {
			s.newRound()
			e := s.at(s.cursor)
			if at := e.cell.Expiry(e.rule); at > now {
				s.seen = min(s.seen, at)
				s.cursor++
				continue
			}
			bytes += s.remove(s.cursor)
			found++
		}
		s.newRound()
		removed += int64(found)
	}
	return removed, bytes
}
