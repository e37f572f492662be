package memory

import (
	"fmt"
	"testing"
	"unique"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// broken says what does not fit together in a store that nobody uses, or "".
func broken(s *Store) string {
	kept := 0
	for i := range s.shards {
		if problem := brokenShard(&s.shards[i]); problem != "" {
			return problem
		}
		kept += len(s.shards[i].queue)
	}
	if n := s.count.Load(); n != int64(kept) {
		return fmt.Sprintf("count is %d; expected %d, which are kept", n, kept)
	}
	return ""
}

func brokenShard(s *shard) string {
	listed := 0
	for hash, e := range s.entries {
		for ; e != nil; e = e.next {
			listed++
			switch {
			case e.hash != hash:
				return fmt.Sprintf("%s is listed under hash %x; expected %x", e.subject, hash, e.hash)
			case e.index >= len(s.queue) || s.queue[e.index] != e:
				return fmt.Sprintf("%s is not at %d in the queue of its shard", e.subject, e.index)
			case e.index > 0 && s.queue[(e.index-1)/2].expiry > e.expiry:
				return fmt.Sprintf("%s stands at %d in the queue, behind one that expires later", e.subject, e.index)
			}
		}
	}
	if listed != len(s.queue) {
		return fmt.Sprintf("%d entries are listed; expected %d, which are in the queue", listed, len(s.queue))
	}
	return ""
}

// Two subjects of one hash are two entries, and each can go first.
func TestEntriesOfOneHash(t *testing.T) {
	const hash = 7
	prefix, rule := unique.Make("p"), newRule(decide.Fixed, "r", 100)
	subjects := []string{"a", "b", "c"}
	claim := func(subject string) *decide.Claim { return &ask(subject, 1, rule).Claims[0] }
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		s := &shard{entries: make(map[uint64]*entry)}
		for _, subject := range subjects {
			s.add(hash, prefix, claim(subject), decide.NewState(rule))
		}
		gone := make(map[string]bool)
		for _, i := range order {
			s.remove(s.find(hash, prefix, claim(subjects[i])))
			gone[subjects[i]] = true
			if problem := brokenShard(s); problem != "" {
				t.Fatalf("order %v, after %d: %s", order, i, problem)
			}
			for _, subject := range subjects {
				if found := s.find(hash, prefix, claim(subject)) != nil; found == gone[subject] {
					t.Fatalf("order %v, after %d: found %s is %t", order, i, subject, found)
				}
			}
		}
		if len(s.entries) > 0 || len(s.queue) > 0 {
			t.Fatalf("order %v: found %d entries and %d in the queue; expected none", order, len(s.entries), len(s.queue))
		}
	}
}

// newShard returns a shard of n windows that end one after the other, the last one added first: from 101 on.
func newShard(n int64) (*shard, *decide.Rule) {
	rule := newRule(decide.Log, "r", 100)
	s := &shard{entries: make(map[uint64]*entry)}
	for i := n; i > 0; i-- {
		c := &ask(fmt.Sprint(i), 2, rule).Claims[0]
		state := decide.NewState(rule)
		state.Commit(c, i, i)
		s.add(uint64(i), unique.Make("p"), c, state)
	}
	return s, rule
}

// A call looks at a bounded number of entries, those that are due first.
func TestExpireIsBounded(t *testing.T) {
	s, _ := newShard(10)
	for _, step := range []struct {
		now     int64
		n       int
		removed int64
	}{{100, 10, 0}, {101, 10, 1}, {105, 2, 2}, {105, 10, 2}, {200, 0, 0}, {200, 10, 5}, {200, 10, 0}} {
		if got := s.expire(step.now, step.n); got != step.removed {
			t.Errorf("expire(%d, %d): removed %d; expected %d", step.now, step.n, got, step.removed)
		}
	}
}

// An entry that turns out to live longer makes way for those behind it.
func TestExpireGoesOnAfterProlongedEntries(t *testing.T) {
	s, rule := newShard(10)
	for _, i := range []int64{1, 2} {
		e := s.entries[uint64(i)]
		e.state.Commit(&ask(e.subject, 2, rule).Claims[0], 50, 50)
	}
	if got := s.expire(105, 10); got != 3 { // the third to the fifth
		t.Errorf("removed %d; expected 3", got)
	}
	if problem := brokenShard(s); problem != "" {
		t.Error(problem)
	}
	if got := s.expire(149, 10); got != 5 {
		t.Errorf("removed %d; expected 5", got)
	}
	if got := s.expire(150, 10); got != 2 {
		t.Errorf("removed %d; expected 2", got)
	}
}

// Any entry can be removed, not only that which is due first.
func TestRemoveFromTheMiddle(t *testing.T) {
	s, _ := newShard(20)
	for _, i := range []uint64{7, 20, 1, 13} {
		s.remove(s.entries[i])
		if problem := brokenShard(s); problem != "" {
			t.Fatal(problem)
		}
	}
	if got := s.expire(110, 20); got != 8 {
		t.Errorf("removed %d; expected 8", got)
	}
}
