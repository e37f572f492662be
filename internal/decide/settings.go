package decide

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// pauseLeft returns how long a setting still pauses the key of a claim.
func (l *Limiter) pauseLeft(a *Asked) time.Duration {
	if !a.Rule.enforces() {
		return 0
	}
	return l.timeLeft(l.fleet.InForce().ForKey(a.Rule.Numbers.Name, a.text, a.Claim.Subject, l.hashes(a.Rule)).Pause)
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

// unexpired returns the settings that have not ended.
func (l *Limiter) unexpired(all ...*fleet.Setting) []*fleet.Setting {
	hasEnded := func(s *fleet.Setting) bool { return !s.Until.IsZero() && s.EndedAt(l.fleet.Now()) }
	if !slices.ContainsFunc(all, hasEnded) {
		return all
	}
	l.fleet.Drop()
	return slices.DeleteFunc(slices.Clone(all), hasEnded)
}

// ownSettings are the overrides of one limiter. They take the place of those in the store.
type ownSettings struct {
	mu       sync.Mutex
	settings map[ownKey]*fleet.Setting
	merged   atomic.Pointer[merged] // nil if there are none
}

// ownKey identifies an override by the name of its rule, and the key or the pattern of keys as the program writes it.
type ownKey struct {
	rule, text string
	match      bool
}

// merged are the settings of the store in which those of one limiter have taken the place of others.
type merged struct {
	stored, all *fleet.InForce
	until       time.Time // when the first one of the limiter ends; zero means never
}

// inForce returns the settings in force for the limiter.
func (l *Limiter) inForce() *fleet.InForce {
	stored, m := l.fleet.InForce(), l.own.merged.Load()
	switch {
	case m == nil:
		return stored
	case m.stored != stored || !m.until.IsZero() && !l.fleet.Now().Before(m.until):
		l.own.mu.Lock()
		defer l.own.mu.Unlock()
		return l.own.merge(l)
	}
	return m.all
}

// SetLocal sets an override of this limiter alone. Its Key is as the program writes it.
func (l *Limiter) SetLocal(s *fleet.Setting) {
	l.own.edit(l, func(settings map[ownKey]*fleet.Setting) { settings[ownKey{s.Rule, s.Key, s.Match}] = s })
}

// ClearLocal removes an override of this limiter, for a key or for a pattern of keys.
func (l *Limiter) ClearLocal(rule, text string, match bool) {
	l.own.edit(l, func(settings map[ownKey]*fleet.Setting) { delete(settings, ownKey{rule, text, match}) })
}

// edit changes the limiter's own settings. A setting that was made before its rule was known may get another key, because only the rule says whether
// keys are hashed.
func (o *ownSettings) edit(l *Limiter, do func(settings map[ownKey]*fleet.Setting)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.settings == nil {
		o.settings = map[ownKey]*fleet.Setting{}
	}
	do(o.settings)
	for k, s := range o.settings {
		if key := l.Subject(l.UsesPlainKeys(k.rule), k.text); key != s.Key && !s.Match {
			o.settings[k] = &fleet.Setting{Kind: s.Kind, Rule: s.Rule, Key: key, AllKeys: s.AllKeys, Values: s.Values}
		}
	}
	o.merge(l)
}

// merge returns what is in force for the limiter, and keeps it until that changes. The settings must be locked.
func (o *ownSettings) merge(l *Limiter) *fleet.InForce {
	now, m := l.fleet.Now(), &merged{stored: l.fleet.InForce()}
	for k, s := range o.settings {
		if s.EndedAt(now) {
			delete(o.settings, k)
		} else if !s.Until.IsZero() && (m.until.IsZero() || s.Until.Before(m.until)) {
			m.until = s.Until
		}
	}
	if len(o.settings) == 0 {
		o.merged.Store(nil)
		return m.stored
	}
	m.all = m.stored.With(maps.Values(o.settings), now)
	o.merged.Store(m)
	return m.all
}

// Settings returns the settings that are in force for the limiter.
func (l *Limiter) Settings() iter.Seq[*fleet.Setting] {
	return func(yield func(*fleet.Setting) bool) {
		now := l.fleet.Now()
		for s := range l.inForce().All() {
			if !s.EndedAt(now) && !yield(s) {
				return
			}
		}
	}
}

// overridden returns the rule as overrides make it, of which the most exact one comes first. If the rule cannot have their values, those stay out that
// it cannot have beside more exact ones, and Unusable returns why.
func (l *Limiter) overridden(rule *Rule, overrides []*fleet.Setting) *Rule {
	changed, err := l.override(rule, overrides)
	if err == nil {
		return changed
	}
	changed = rule
	var usable []*fleet.Setting
	for _, s := range overrides {
		more := append(slices.Clone(usable), s)
		if with, err := l.override(rule, more); err != nil {
			l.noteUnusable(s, err)
		} else {
			changed, usable = with, more
		}
	}
	return changed
}

// override is overridden for overrides whose values the rule can have.
func (l *Limiter) override(rule *Rule, overrides []*fleet.Setting) (*Rule, error) {
	if len(overrides) == 0 {
		return rule, nil
	}
	changed, err := rule.Declared.Override(rule, overrides)
	if err == nil {
		err = l.Supports(changed, changed.Wait.Microseconds())
	}
	return changed, err
}

// noteUnusable notes why a rule cannot have a setting.
func (l *Limiter) noteUnusable(s *fleet.Setting, err error) {
	if _, noted := l.unusable.Load(s); !noted {
		l.noted() // forgets those that are not in force any more
		l.unusable.Store(s, err)
	}
}

// noteTexts notes the settings by text that match no key of a rule, because its keys are hashed.
func (l *Limiter) noteTexts(p *planned) {
	if !l.hashes(p.declared) {
		return
	}
	for _, s := range p.byPattern.Texts() {
		l.noteUnusable(s, p.declared.Declared.Wrong("match", textOfHashed(s.Key).Error()))
	}
}

// Unusable returns an error for each setting in force that a rule in use cannot have.
func (l *Limiter) Unusable() []error {
	now := judged{l.inForce(), len(l.Used())}
	if last := l.judged.Load(); last == nil || *last != now {
		l.judge(now.in)
		l.judged.Store(&now)
	}
	if now.in.IsBeyond() && !l.fleet.InForce().IsBeyond() { // the fleet says it of settings in the store
		return append(l.noted(), errNoRoom)
	}
	return l.noted()
}

var errNoRoom = fmt.Errorf("overrides of this limiter alone have no room beside the settings by pattern in the store: %d hold in all; end some of them",
	fleet.MaxPatterns)

// judged says which settings were judged, for how many rules in use.
type judged struct {
	in    *fleet.InForce
	rules int
}

// judge notes the settings that rules in use cannot have, also those of keys whose calls have not come since the process started.
func (l *Limiter) judge(in *fleet.InForce) {
	rules := l.Used()
	for s := range in.All() {
		for _, rule := range rules {
			if s.Kind != fleet.Override || !fleet.Covers(s.Rule, rule.Numbers.Name) {
				continue
			}
			if _, err := l.override(rule, []*fleet.Setting{s}); err != nil {
				l.unusable.LoadOrStore(s, err)
			}
		}
	}
	for _, rule := range rules {
		l.noteTexts(&planned{declared: rule, byPattern: in.ByPattern(rule.Numbers.Name)})
	}
}

// noted returns the errors that were noted for settings in force, and forgets the others.
func (l *Limiter) noted() (errs []error) {
	in := l.inForce()
	l.unusable.Range(func(setting, err any) bool {
		s := setting.(*fleet.Setting)
		if in.Like(s) == s && len(l.unexpired(s)) > 0 {
			errs = append(errs, err.(error))
		} else {
			l.unusable.Delete(setting)
		}
		return true
	})
	return errs
}
