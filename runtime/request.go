package runtime

import (
	"cmp"
	"fmt"
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

// Charge is what one rule takes of a call.
type Charge struct {
	Key    string // the subject; "" for a rule without a key
	Cost   int64  // permits; with 0 the rule does not apply; what is a *KeyError is as for a Request
	Member string // what is counted, if the rule is Distinct
	Limit  Limit  // the limit that this call brings along; the zero Limit is the rule's
}

// Limit is how many permits a window has, for one call.
type Limit struct {
	permits int64
	given   bool
}

// LimitOf returns the limit of n permits. Where the rule could not have it, see [Rule].Limit, the call fails with a *KeyError.
func LimitOf(n int64) Limit { return Limit{n, true} }

// Rules are the rules of one method, prepared. Generated code holds them.
type Rules struct {
	method string
	rules  []*prepared
}

// NewRules prepares the rules of method, which is called pkg.Type.Method; a rule without a name is called the same. It panics
// if a rule is not valid, which those of generated code are.
func NewRules(method string, rules ...Rule) *Rules {
	r := &Rules{method: method}
	for _, rule := range rules {
		if rule.Name == "" {
			rule.Name = method
		}
		p, err := rule.prepare(rule.suffix(method))
		if err = cmp.Or(err, rule.checkQueue()); err != nil {
			panic(err)
		}
		r.rules = append(r.rules, p)
	}
	return r
}

// match keeps a call with too few subjects from being limited too little.
func (r *Rules) match(subjects int) error {
	if subjects != len(r.rules) {
		return &KeyError{Method: r.method, Reason: fmt.Sprintf("found %d keys for %d rules", subjects, len(r.rules))}
	}
	return nil
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
