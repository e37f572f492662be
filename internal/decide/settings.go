package decide

import (
	"cmp"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// pauseLeft returns how long a setting still pauses a subject of a rule.
func (l *Limiter) pauseLeft(rule *Rule, subject string) time.Duration {
	if !rule.enforces() {
		return 0
	}
	return l.timeLeft(l.fleet.InForce().Of(rule.Numbers.Name).OfKey(subject).Pause)
}

// timeLeft returns how long a setting with an end still holds, or 0 for nil. It reads the clock once.
func (l *Limiter) timeLeft(s *fleet.Setting) time.Duration {
	if s == nil {
		return 0
	}
	left := s.Until.Sub(l.fleet.Now())
	if left <= 0 {
		l.fleet.Drop()
	}
	return max(0, left)
}

// unexpired returns a setting, or nil if it has ended.
func (l *Limiter) unexpired(s *fleet.Setting) *fleet.Setting {
	if s == nil || s.Until.IsZero() || !s.EndedAt(l.fleet.Now()) {
		return s
	}
	l.fleet.Drop()
	return nil
}

// ownSettings are the overrides of one limiter. They take the place of those in the store.
type ownSettings struct {
	mu       sync.Mutex
	settings map[ownKey]*fleet.Setting
	inForce  atomic.Pointer[fleet.InForce] // what holds of them; nil if none does
}

// ownKey identifies an override by the name of its rule, and the key as the program writes it.
type ownKey struct{ rule, text string }

// SetLocal sets an override of this limiter alone. Its Key is as the program writes it.
func (l *Limiter) SetLocal(s *fleet.Setting) {
	l.own.edit(l, func(settings map[ownKey]*fleet.Setting) { settings[ownKey{s.Rule, s.Key}] = s })
}

// ClearLocal removes an override of this limiter.
func (l *Limiter) ClearLocal(rule, key string) {
	l.own.edit(l, func(settings map[ownKey]*fleet.Setting) { delete(settings, ownKey{rule, key}) })
}

// edit changes the limiter's own settings. A setting that was made before its rule was known may get another key, because only the rule says
// whether keys are hashed.
func (o *ownSettings) edit(l *Limiter, do func(settings map[ownKey]*fleet.Setting)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.settings == nil {
		o.settings = map[ownKey]*fleet.Setting{}
	}
	do(o.settings)
	now := l.fleet.Now()
	for k, s := range o.settings {
		if s.EndedAt(now) {
			delete(o.settings, k)
		} else if key := l.Subject(l.UsesPlainKeys(k.rule), k.text); key != s.Key {
			o.settings[k] = &fleet.Setting{Kind: s.Kind, Rule: s.Rule, Key: key, AllKeys: s.AllKeys, Values: s.Values}
		}
	}
	var none *fleet.InForce
	o.inForce.Store(none.With(maps.Values(o.settings), now))
}

// Settings returns the settings that are in force for the limiter.
func (l *Limiter) Settings() iter.Seq[*fleet.Setting] {
	return func(yield func(*fleet.Setting) bool) {
		local := l.own.inForce.Load()
		for _, in := range []*fleet.InForce{local, l.fleet.InForce()} {
			for s := range in.All() {
				replaced := in != local && sameIn(local, s) != nil
				if !replaced && l.unexpired(s) != nil && !yield(s) {
					return
				}
			}
		}
	}
}

// sameIn returns the override among the settings for the rule and key of another one, or nil.
func sameIn(in *fleet.InForce, s *fleet.Setting) *fleet.Setting {
	of := in.Of(s.Rule)
	switch {
	case s.Kind != fleet.Override:
		return nil
	case s.AllKeys:
		return of.All
	default:
		return of.OfKey(s.Key).Override
	}
}

// overridden returns the rule as an override for one key and the one for all keys make it. Either may be nil. If the rule cannot have the values,
// it stays as it is, and Unusable returns why.
func (l *Limiter) overridden(rule *Rule, own, all *fleet.Setting) *Rule {
	if own == nil && all == nil {
		return rule
	}
	changed, err := rule.Declared.Override(rule, own, all)
	if err == nil {
		err = l.Supports(changed, changed.Wait.Microseconds())
	}
	if err == nil {
		return changed
	}
	l.Unusable() // forgets those that are not in force any more
	l.unusable.LoadOrStore(cmp.Or(own, all), err)
	return rule
}

// Unusable returns an error for each override in force that a rule which was called cannot have.
func (l *Limiter) Unusable() (errs []error) {
	l.unusable.Range(func(setting, err any) bool {
		s := setting.(*fleet.Setting)
		if l.unexpired(s) != nil && (sameIn(l.own.inForce.Load(), s) == s || sameIn(l.fleet.InForce(), s) == s) {
			errs = append(errs, err.(error))
		} else {
			l.unusable.Delete(setting)
		}
		return true
	})
	return errs
}
