package fleet

import (
	"cmp"
	"hash/maphash"
	"iter"
	"maps"
	"time"
)

// InForce are the settings that hold. It never changes: a new one replaces it, and shares with it what is equal.
type InForce struct {
	rules map[string]*OfRule
	n     int
	until time.Time // when the first setting ends, or earlier; zero means never
}

// OfRule are the settings that hold for the rules of one name.
type OfRule struct {
	All    *Setting // the override for all keys; or nil
	n      int      // keys with settings
	shards *[shards]*shard
}

// shards is over how many shards the keys of a rule are spread, by their hashes. A change copies one of them.
const shards = 128

// shard has the settings of some keys. The filter has a bit set for the hash of each of them, and perhaps others.
type shard struct {
	filter [16]uint64 // 13 bits a key if all settings that there can be are for keys of one rule
	keys   map[string]OfKey
}

// OfKey are the settings that hold for one key of a rule, or nil.
type OfKey struct{ Override, Block, Pause *Setting }

var seed = maphash.MakeSeed()

// InForce returns the settings that hold, or nil if there are none.
func (f *Fleet) InForce() *InForce { return f.inForce.Load() }

// noSettings are those of a rule for which nothing is set.
var noSettings OfRule

// Of returns the settings for the rules of a name. A nil InForce has none.
func (in *InForce) Of(rule string) *OfRule {
	if in != nil && in.rules[rule] != nil {
		return in.rules[rule]
	}
	return &noSettings
}

// Len returns for how many keys there are settings.
func (r *OfRule) Len() int { return r.n }

// OfKey returns the settings for a key. Most keys have none, and the filter says so in half the time of the map.
func (r *OfRule) OfKey(subject string) OfKey {
	if r.shards == nil {
		return OfKey{}
	}
	hash := maphash.String(seed, subject)
	p := r.shards[hash%shards]
	if p == nil || p.filter[wordOf(hash)]&bitOf(hash) == 0 {
		return OfKey{}
	}
	return p.keys[subject]
}

func wordOf(hash uint64) uint64 { return hash / shards % uint64(len(shard{}.filter)) }
func bitOf(hash uint64) uint64  { return 1 << (hash >> 58) }

// len returns how many settings hold.
func (in *InForce) len() int {
	if in == nil {
		return 0
	}
	return in.n
}

// All returns the settings, in no order.
func (in *InForce) All() iter.Seq[*Setting] {
	return func(yield func(*Setting) bool) {
		if in == nil {
			return
		}
		for _, r := range in.rules {
			if r.All != nil && !yield(r.All) || !r.each(yield) {
				return
			}
		}
	}
}

// each passes the settings of keys to yield until that returns false. It reports whether it never did.
func (r *OfRule) each(yield func(*Setting) bool) bool {
	if r.shards == nil {
		return true
	}
	for _, p := range r.shards {
		if p == nil {
			continue
		}
		for _, k := range p.keys {
			for _, s := range []*Setting{k.Override, k.Block, k.Pause} {
				if s != nil && !yield(s) {
					return false
				}
			}
		}
	}
	return true
}

// With returns in with further settings in place of those of the same kind, rule and key. Those that do not hold leave nothing. The result is nil
// if no setting holds. Its time depends on how many are changed, not on how many hold.
func (in *InForce) With(changed iter.Seq[*Setting], now time.Time) *InForce {
	if in == nil {
		in = new(InForce)
	}
	next := &InForce{rules: maps.Clone(in.rules), n: in.n, until: in.until}
	if next.rules == nil {
		next.rules = map[string]*OfRule{}
	}
	for s := range changed {
		holds := s.holds(now)
		if holds && !s.Until.IsZero() && (next.until.IsZero() || s.Until.Before(next.until)) {
			next.until = s.Until
		}
		next.put(in, s, holds)
	}
	if next.n == 0 {
		return nil
	}
	return next
}

// put adds a setting, or removes the one of its name if it does not hold. What is shared with before is copied first.
func (in *InForce) put(before *InForce, s *Setting, holds bool) {
	old := cmp.Or(before.rules[s.Rule], &noSettings)
	r := in.rules[s.Rule]
	switch r {
	case nil:
		r = new(OfRule)
	case old:
		r = &OfRule{old.All, old.n, old.shards}
	}
	in.rules[s.Rule] = r
	value := s
	if !holds {
		value = nil
	}
	if r.put(old, s, value) != nil {
		in.n--
	}
	if holds {
		in.n++
	}
	if r.n == 0 && r.All == nil {
		delete(in.rules, s.Rule)
	}
}

// put sets what holds under the name of a setting, or nil, and returns what held before.
func (r *OfRule) put(old *OfRule, s, value *Setting) (replaced *Setting) {
	if s.AllKeys && s.Kind == Override {
		replaced, r.All = r.All, value
		return replaced
	}
	p := r.own(old, maphash.String(seed, s.Key))
	k, keys := p.keys[s.Key], len(p.keys)
	of := k.of(s.Kind)
	replaced, *of = *of, value
	if p.keys[s.Key] = k; k == (OfKey{}) {
		delete(p.keys, s.Key)
	}
	r.n += len(p.keys) - keys
	return replaced
}

// of returns where the setting of a kind is.
func (k *OfKey) of(kind Kind) **Setting {
	switch kind {
	case Block:
		return &k.Block
	case Pause:
		return &k.Pause
	}
	return &k.Override
}

// own returns the shard of the keys with a hash, for a key to be put into. It copies what the rule shares with old.
func (r *OfRule) own(old *OfRule, hash uint64) *shard {
	if all := r.shards; all == nil || all == old.shards {
		if r.shards = new([shards]*shard); all != nil {
			*r.shards = *all
		}
	}
	p := &r.shards[hash%shards]
	switch {
	case *p == nil:
		*p = &shard{keys: map[string]OfKey{}}
	case old.shards != nil && *p == old.shards[hash%shards]:
		*p = &shard{(*p).filter, maps.Clone((*p).keys)}
	}
	(*p).filter[wordOf(hash)] |= bitOf(hash)
	return *p
}
