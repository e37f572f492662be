package fleet

import (
	"iter"
	"math"
	"time"
)

// InForce are the settings that hold. It never changes: a new one replaces it, and shares with it what is equal.
type InForce struct {
	rules    *tree[*OfRule]
	patterns *patterns // nil if there are none
	beyond   bool      // settings by pattern were left out, because there are too many
}

// OfRule are the settings that hold for the rules of one name.
type OfRule struct {
	All  *Setting // the override for all keys; or nil
	keys *tree[OfKey]
}

// OfKey are the settings that hold for one key of a rule, or nil.
type OfKey struct{ Override, Block, Pause *Setting }

// InForce returns the settings that hold, or nil if there are none.
func (f *Fleet) InForce() *InForce { return f.inForce.Load() }

// noSettings are those of a rule for which nothing is set.
var noSettings OfRule

// Of returns the settings for the rules of a name. It is the same pointer as before if none of them has changed. A nil InForce has none.
func (in *InForce) Of(rule string) *OfRule {
	if in != nil {
		if r := in.rules.get(rule); r != nil {
			return r
		}
	}
	return &noSettings
}

// Len returns for how many keys there are settings.
func (r *OfRule) Len() int { return int(r.keys.total().keys) }

// Settings returns the settings for the rules, in no order.
func (r *OfRule) Settings() iter.Seq[*Setting] {
	return func(yield func(*Setting) bool) { r.each(math.MaxInt64, yield) }
}

// each passes the settings that end by a time, in milliseconds. It reports whether yield never returned false.
func (r *OfRule) each(at int64, yield func(*Setting) bool) bool {
	some := func(s *Setting) bool { return s == nil || s.total().first > at || yield(s) }
	return some(r.All) && r.keys.each(at, func(k OfKey) bool { return some(k.Override) && some(k.Block) && some(k.Pause) })
}

// OfKey returns the settings for a key.
func (r *OfRule) OfKey(subject string) OfKey { return r.keys.get(subject) }

// total returns the sum of the settings.
func (in *InForce) total() sum {
	if in == nil {
		return nothing
	}
	return in.rules.total().and(in.patterns.all().total())
}

// IsBeyond reports whether settings by pattern were left out.
func (in *InForce) IsBeyond() bool { return in != nil && in.beyond }

// patternCount returns how many settings by pattern there are.
func (in *InForce) patternCount() int {
	if in == nil {
		return 0
	}
	return int(in.patterns.all().total().settings)
}

// lostByPattern returns how many settings by pattern the store has lost.
func (in *InForce) lostByPattern() int {
	if in == nil {
		return 0
	}
	return int(in.patterns.all().total().lost)
}

// Like returns the setting of the same kind, rule and key as another one, or nil if none holds.
func (in *InForce) Like(s *Setting) *Setting {
	of := in.Of(s.Rule)
	switch {
	case s.byPattern() && in == nil:
		return nil
	case s.byPattern():
		return in.patterns.all().get(s.Name())
	case s.AllKeys:
		return of.All
	}
	return of.OfKey(s.Key).Of(s.Kind)
}

func (r *OfRule) total() sum { return r.All.total().and(r.keys.total()) }

func (k OfKey) total() sum {
	s := k.Override.total().and(k.Block.total()).and(k.Pause.total())
	s.keys = 1
	return s
}

// All returns the settings, in no order.
func (in *InForce) All() iter.Seq[*Setting] { return in.endingBy(math.MaxInt64) }

// endingBy returns the settings that end by a time, in milliseconds.
func (in *InForce) endingBy(at int64) iter.Seq[*Setting] {
	return func(yield func(*Setting) bool) {
		if in == nil {
			return
		}
		some := func(s *Setting) bool { return s == nil || s.total().first > at || yield(s) }
		_ = in.patterns.all().each(at, some) && in.rules.each(at, func(r *OfRule) bool { return r.each(at, yield) })
	}
}

// With returns in with further settings in place of those of the same kind, rule and key. Those that do not hold leave nothing. It leaves out settings
// by pattern that are too many. The result is nil if no setting holds. Its time depends on how many are changed, on the logarithm of how many hold, and
// if settings by pattern change, on how many of these hold.
func (in *InForce) With(changed iter.Seq[*Setting], now time.Time) *InForce {
	if in == nil {
		in = new(InForce)
	}
	next, byPattern := *in, in.patterns.all()
	for s := range changed {
		switch holds := s.holds(now); {
		case !s.byPattern():
			next.rules = next.rules.with(s.Rule, next.rules.get(s.Rule).with(s, holds))
		case !holds:
			byPattern = byPattern.with(s.Name(), nil)
		case byPattern.total().settings >= MaxPatterns && byPattern.get(s.Name()) == nil:
			next.beyond = true
		default:
			byPattern = byPattern.with(s.Name(), s)
		}
	}
	if byPattern != in.patterns.all() {
		next.patterns = newPatterns(byPattern)
	}
	switch next {
	case InForce{}:
		return nil
	case *in:
		return in
	}
	return &next
}

// with returns r with another setting, or without it if it does not hold. It returns r if nothing changes, and nil if no setting is left.
func (r *OfRule) with(s *Setting, holds bool) *OfRule {
	if r == nil {
		r = new(OfRule)
	}
	value, next := s, *r
	if !holds {
		value = nil
	}
	if s.AllKeys && s.Kind == Override {
		next.All = value
	} else {
		k := next.keys.get(s.Key)
		*k.of(s.Kind) = value
		next.keys = next.keys.with(s.Key, k)
	}
	switch next {
	case OfRule{}:
		return nil
	case *r:
		return r
	}
	return &next
}

// Of returns the setting of a kind, or nil.
func (k OfKey) Of(kind Kind) *Setting { return *k.of(kind) }

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
