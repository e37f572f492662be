package memory

import (
	"container/heap"
	"strings"
	"sync"
	"unique"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// shard is a part of the store, with a lock of its own.
type shard struct {
	sync.Mutex
	entries map[uint64]*entry // by hash; entries of one hash are a list
	queue   queue
}

// entry is the state of one rule for one subject.
type entry struct {
	prefix  unique.Handle[string]
	rule    *decide.Rule
	subject string
	state   decide.State

	hash   uint64
	next   *entry // of the same hash
	expiry int64  // as of when the entry was queued; the state may live longer by now
	index  int    // in the queue
}

func (s *shard) find(hash uint64, prefix unique.Handle[string], c *decide.Claim) *entry {
	e := s.entries[hash]
	for e != nil && (e.rule.ID != c.Rule.ID || e.subject != c.Subject || e.prefix != prefix) {
		e = e.next
	}
	return e
}

// add keeps a new state.
func (s *shard) add(hash uint64, prefix unique.Handle[string], c *decide.Claim, state decide.State) {
	e := &entry{
		prefix: prefix, rule: c.Rule, subject: strings.Clone(c.Subject), state: state,
		hash: hash, next: s.entries[hash], expiry: state.Expiry(c.Rule),
	}
	s.entries[hash] = e
	heap.Push(&s.queue, e)
}

func (s *shard) remove(e *entry) {
	heap.Remove(&s.queue, e.index)
	first := s.entries[e.hash]
	switch {
	case first != e:
		for first.next != e {
			first = first.next
		}
		first.next = e.next
	case e.next != nil:
		s.entries[e.hash] = e.next
	default:
		delete(s.entries, e.hash)
	}
}

// expire looks at most n times at the entry that is due first, and removes it if it has expired. It returns how many it
// removed.
func (s *shard) expire(now int64, n int) (removed int64) {
	for ; n > 0 && len(s.queue) > 0 && s.queue[0].expiry <= now; n-- {
		e := s.queue[0]
		if e.expiry = e.state.Expiry(e.rule); e.expiry <= now {
			s.remove(e)
			removed++
		} else {
			heap.Fix(&s.queue, 0)
		}
	}
	return removed
}

// queue is a heap of entries by expiry.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].expiry < q[j].expiry }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i]; q[i].index, q[j].index = i, j }

func (q *queue) Push(e any) {
	e.(*entry).index = len(*q)
	*q = append(*q, e.(*entry))
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
