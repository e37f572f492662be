package ratelimit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// ruleCache keeps the prepared rules of requests. When it is full, a new rule replaces an arbitrary one.
type ruleCache struct {
	recent [recentRules]atomic.Pointer[prepared]

	mu    sync.Mutex
	rules map[Rule]*prepared // at most cachedRules
}

const (
	cachedRules = 10_000
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
	p, err := l.requested.find(*r)
	if err == nil {
		recent.Store(p)
	}
	return p, err
}

func (c *ruleCache) find(r Rule) (*prepared, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.rules[r]; p != nil {
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
	c.rules[r] = p
	return p, nil
}
