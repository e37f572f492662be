package fleet

import (
	"hash/maphash"
	"iter"
	"slices"
	"time"
)

// InForce are the settings that hold. It never changes: a new one replaces it.
type InForce struct {
	rules map[string]*OfRule
	all   []*Setting
	until time.Time // when the first setting ends; zero means never
}

// OfRule are the settings that hold for the rules of one name.
type OfRule struct {
	All    *Setting // the override for all keys; or nil
	keys   map[string]OfKey
	filter []uint64 // has a bit set for the hash of each key
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
func (r *OfRule) Len() int { return len(r.keys) }

// OfKey returns the settings for a key. Most keys have none, and the filter says so in half the time of the map.
func (r *OfRule) OfKey(subject string) OfKey {
	if len(r.filter) == 0 {
		return OfKey{}
	}
	hash := maphash.String(seed, subject)
	if r.filter[hash>>6%uint64(len(r.filter))]>>(hash&63)&1 == 0 {
		return OfKey{}
	}
	return r.keys[subject]
}

// With returns in with further settings in place of those of the same kind, rule and key.
func (in *InForce) With(own map[string]*Setting, now time.Time) *InForce {
	all := map[string]*Setting{}
	for s := range in.All() {
		all[s.Name()] = s
	}
	for name, s := range own {
		if s.holds(now) {
			all[name] = s
		}
	}
	return newInForce(all, now)
}

// All returns the settings, in no order.
func (in *InForce) All() iter.Seq[*Setting] {
	if in == nil {
		in = new(InForce)
	}
	return slices.Values(in.all)
}

// newInForce returns those of the settings that hold, or nil if none does.
func newInForce(all map[string]*Setting, now time.Time) *InForce {
	in := &InForce{rules: map[string]*OfRule{}}
	for _, s := range all {
		if !s.holds(now) {
			continue
		}
		if !s.Until.IsZero() && (in.until.IsZero() || s.Until.Before(in.until)) {
			in.until = s.Until
		}
		in.put(s)
	}
	if len(in.all) == 0 {
		return nil
	}
	for _, r := range in.rules {
		r.filter = make([]uint64, (len(r.keys)+3)/4) // 16 bits a key
		for subject := range r.keys {
			hash := maphash.String(seed, subject)
			r.filter[hash>>6%uint64(len(r.filter))] |= 1 << (hash & 63)
		}
	}
	return in
}

func (in *InForce) put(s *Setting) {
	in.all = append(in.all, s)
	r := in.rules[s.Rule]
	if r == nil {
		r = &OfRule{keys: map[string]OfKey{}}
		in.rules[s.Rule] = r
	}
	if s.AllKeys && s.Kind == Override {
		r.All = s
		return
	}
	k := r.keys[s.Key]
	switch s.Kind {
	case Block:
		k.Block = s
	case Pause:
		k.Pause = s
	default:
		k.Override = s
	}
	r.keys[s.Key] = k
}
