package ratelimit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// ruleCache keeps what was made of the rules that are asked for. It is bounded, and has no cliff: a rule beyond the bound takes
// the place of one that was not asked for since long.
type ruleCache struct {
	recent [recentRules]atomic.Pointer[prepared]

	mu       sync.Mutex
	young    map[Rule]*prepared // at most cachedRules
	old      map[Rule]*prepared // those that were young before
	capacity int                // of young; 0 is cachedRules
}

const (
	cachedRules = 10_000
	// recentRules is how many rules are found by comparing, which takes a tenth of the time of hashing them.
	recentRules = 64
)

var ruleSeed = maphash.MakeSeed()

// prepare returns the rule of a request, prepared.
func (l *Limiter) prepare(r *Rule) (*prepared, error) {
	recent := &l.requested.recent[(maphash.String(ruleSeed, r.Name)^uint64(r.Limit))%recentRules]
	if p := recent.Load(); p != nil && p.Rule == *r {
		return p, nil
	}
	p, err := l.requested.find(*r)
	if err == nil {
		recent.Store(p)
	}
	return p, err
}

func (c *ruleCache) find(r Rule) (*prepared, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.young[r]
	if p != nil {
		return p, nil
	}
	if p = c.old[r]; p == nil {
		var err error
		if p, err = r.prepare(""); err != nil {
			return nil, err
		}
	}
	if c.young == nil || len(c.young) >= c.capacity {
		c.young, c.old = make(map[Rule]*prepared), c.young
		if c.capacity == 0 {
			c.capacity = cachedRules
		}
	}
	c.young[r] = p
	return p, nil
}
