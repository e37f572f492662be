package ratelimit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// Request asks one rule for permits.
type Request struct {
	Rule   Rule
	Key    string // whose permits; "" is everybody's, unless the rule has a Key
	Cost   int64  // permits; 0 means 1, below 0 is a *KeyError, and so is above 1 if the rule is Distinct
	Member string // what is counted, if the rule is Distinct
}

// ruleSet is rules that requests brought along, prepared.
type ruleSet struct {
	recent [recentRules]atomic.Pointer[prepared]
	known  sync.Map // Rule to *prepared
	count  atomic.Int64
}

const (
	// maxRules bounds a ruleSet: beyond it, rules that a program makes up as it goes are prepared for each call.
	maxRules = 10_000
	// recentRules is how many rules are found by comparing, which takes a tenth of the time of hashing them.
	recentRules = 64
)

var ruleSeed = maphash.MakeSeed()

func (s *ruleSet) prepare(r *Rule) (*prepared, error) {
	recent := &s.recent[(maphash.String(ruleSeed, r.Name)^uint64(r.Limit))%recentRules]
	if p := recent.Load(); p != nil && p.Rule == *r {
		return p, nil
	}
	p, err := s.find(*r)
	if err == nil {
		recent.Store(p)
	}
	return p, err
}

func (s *ruleSet) find(r Rule) (*prepared, error) {
	if p, ok := s.known.Load(r); ok {
		return p.(*prepared), nil
	}
	p, err := r.prepare("")
	if err == nil && s.count.Add(1) <= maxRules {
		s.known.Store(r, p)
	}
	return p, err
}
