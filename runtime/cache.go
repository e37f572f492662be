package ratelimit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// ruleCache keeps the prepared rules of requests. When it is full, a new rule replaces an arbitrary one: if a program uses a few more rules in
// turns than the cache keeps, it still finds most of them.
type ruleCache struct {
	recent [recentRules]atomic.Pointer[prepared]

	mu    sync.Mutex
	rules map[uint64]*prepared // by the hash of the rule; at most cachedRules
}

const (
	cachedRules = 40_000 // about 20 MB
	// recentRules is the number of rules that are found by comparison alone. Comparing takes a tenth of the time of hashing a rule.
	recentRules = 64
)

var ruleSeed = maphash.MakeSeed()

// prepare returns the prepared rule of a request.
func (l *Limiter) prepare(r *Rule) (*prepared, error) {
	recent := &l.requested.recent[(maphash.String(ruleSeed, r.Name)^uint64(r.Limit))%recentRules]
	if p := recent.Load(); p != nil && p.Rule == *r {
		return p, nil
	}
	p, err := l.requested.find(r)
	if err == nil {
		recent.Store(p)
	}
	return p, err
}

func (c *ruleCache) find(r *Rule) (*prepared, error) {
	hash := maphash.Comparable(ruleSeed, *r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.rules[hash]; p != nil && p.Rule == *r {
		return p, nil
	}
	p, err := r.prepare("")
	if err != nil {
		return nil, err
	}
	for other := range c.rules {
		if len(c.rules) < cachedRules {
			break
		}
		delete(c.rules, other)
	}
	c.rules[hash] = p
	return p, nil
}
