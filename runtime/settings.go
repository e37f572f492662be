package ratelimit

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// inForce returns what a rule is for a subject, as the overrides in force make it, and how long the subject is still blocked and paused.
func (l *Limiter) inForce(rule *preparedRule, subject string) (_ *preparedRule, blockLeft, pauseLeft time.Duration) {
	in := l.own.over(l)
	if in == nil {
		return rule, 0, 0
	}
	return l.applySettings(rule, subject, in)
}

// applySettings is inForce if there are settings. They may be about the rule.
func (l *Limiter) applySettings(rule *preparedRule, subject string, in *fleet.InForce) (_ *preparedRule, blockLeft, pauseLeft time.Duration) {
	of := rule.settingsIn(in)
	k := of.OfKey(subject)
	if own, all := l.unexpired(k.Override), l.unexpired(of.All); own != nil || all != nil {
		rule = l.applied(rule, own, all)
	}
	if rule.Mode == ModeEnforce {
		blockLeft, pauseLeft = l.timeLeft(k.Block), l.timeLeft(k.Pause)
	}
	return rule, blockLeft, pauseLeft
}

// pauseLeft returns how long a setting still pauses a subject of a rule.
func (l *Limiter) pauseLeft(rule *preparedRule, subject string) time.Duration {
	_, _, left := l.inForce(cmp.Or(rule.base, rule), subject)
	return left
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

// ruleSettings are the settings of a rule among all that are in force.
type ruleSettings struct {
	in *fleet.InForce
	of *fleet.OfRule
}

// settingsIn returns the settings of the rule. It remembers them, because finding a rule by its name takes as long as all else.
func (p *preparedRule) settingsIn(in *fleet.InForce) *fleet.OfRule {
	f := p.settings.Load()
	if f == nil || f.in != in {
		f = &ruleSettings{in, in.Of(p.Name)}
		p.settings.Store(f)
	}
	return f.of
}

// ownSettings are the overrides of one limiter. They take the place of those in the store.
type ownSettings struct {
	mu       sync.Mutex
	settings map[ownKey]*fleet.Setting
	merged   atomic.Pointer[union] // nil if the limiter never had overrides of its own
}

// ownKey identifies an override by the name of its rule, and the key as the program writes it.
type ownKey struct{ rule, text string }

// union has the settings of a store. all has these, and the overrides of one limiter.
type union struct{ store, all *fleet.InForce }

// over returns all settings that are in force for the limiter.
func (o *ownSettings) over(l *Limiter) *fleet.InForce {
	in, m := l.fleet.InForce(), o.merged.Load()
	if m == nil {
		return in
	}
	if m.store == in {
		return m.all
	}
	return o.edit(l, func(map[ownKey]*fleet.Setting) {})
}

// edit changes the limiter's own settings, and returns all that are then in force for the limiter. A setting that was made before its rule was
// known may get another key, because only the rule says whether keys are hashed.
func (o *ownSettings) edit(l *Limiter, do func(settings map[ownKey]*fleet.Setting)) *fleet.InForce {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.settings == nil {
		o.settings = map[ownKey]*fleet.Setting{}
	}
	do(o.settings)
	in, now := l.fleet.InForce(), l.fleet.Now()
	for k, s := range o.settings {
		if s.EndedAt(now) {
			delete(o.settings, k)
		} else if key := l.subject(l.rules.named(k.rule), k.text); key != s.Key {
			o.settings[k] = &fleet.Setting{Kind: s.Kind, Rule: s.Rule, Key: key, AllKeys: s.AllKeys, Values: s.Values}
		}
	}
	m := &union{in, in.With(maps.Values(o.settings), now)}
	o.merged.Store(m)
	return m.all
}

// maxApplied bounds how many changed rules an override remembers.
const maxApplied = 16

// applied returns the rule with the override for its key and that for all keys applied. Either may be nil.
func (l *Limiter) applied(rule *preparedRule, own, all *fleet.Setting) *preparedRule {
	by, under := own, all
	if own == nil {
		by, under = all, nil
	}
	first := by.Applied.Load()
	for a := first; a != nil; a = a.Next {
		if a.From == rule && a.All == under {
			return a.To.(*preparedRule)
		}
	}
	to, err := l.override(rule, own, all)
	if err != nil {
		to = rule
	}
	a := &fleet.Applied{From: rule, To: to, Err: err, All: under, Length: 1}
	if first != nil && first.Length < maxApplied {
		a.Next, a.Length = first, first.Length+1
	}
	by.Applied.CompareAndSwap(first, a)
	return to
}

// override applies overrides to a rule, and prepares the result.
func (l *Limiter) override(rule *preparedRule, own, all *fleet.Setting) (*preparedRule, error) {
	v, wrong := overrideOf(own)
	under, alsoWrong := overrideOf(all)
	if err := joinErrors(wrong, alsoWrong); err != nil {
		return nil, err
	}
	v = v.or(under)
	changed := v.apply(rule.Rule)
	p, err := changed.prepareAs(rule.label, changed.Window(), rule.tagOf(&changed))
	if err != nil {
		return nil, err
	}
	p.base, p.factor = rule, v.Factor
	return p, cmp.Or(rule.clash(p, v), l.supports(p, p.Wait.Microseconds()))
}

// tagOf returns the tag that the rule has after an override has changed the rule.
func (p *preparedRule) tagOf(changed *Rule) string {
	return changed.Window() + strings.TrimPrefix(p.numbers.Tag, p.window)
}

// clash returns an error if an override would give two different rules of a method one count. Such rules cannot decide a call together. If
// another rule has that count without the override, or comes first in the method, changed cannot have it.
func (p *preparedRule) clash(changed *preparedRule, v Override) error {
	tag, first := changed.numbers.Tag, true
	if tag == p.numbers.Tag || p.method == nil {
		return nil
	}
	for _, other := range p.method.rules {
		first = first && other != p
		if other == p || other.Name != p.Name || other.Key != p.Key || other.Scope != p.Scope {
			continue
		}
		rule := v.apply(other.Rule)
		if (other.numbers.Tag == tag || first && other.tagOf(&rule) == tag) && !countAlike(changed.Rule, rule) {
			return p.wrong("per", "found %s, which is the window of another rule of this name in the method; give one of them another name", changed.window)
		}
	}
	return nil
}

// actor is the key of a fleet.Actor in a context.
type actor struct{}

// WithActor says who changes overrides, blocks, pauses or counts with the context that it returns, and why. The store keeps both with what they
// set, and the newest 1,000 changes by actors. Without an actor a change is the program's own, and is not in that list. The store has room for
// 10,000 settings; those without an actor can fill 9,000 of it. by and reason are at most 200 bytes of UTF-8 each. They are what the caller
// claims; nothing proves them.
func WithActor(ctx context.Context, by, reason string) context.Context {
	return context.WithValue(ctx, actor{}, fleet.Actor{By: by, Reason: reason})
}

// actorOf returns the actor of a context. The error is a *RuleError.
func actorOf(ctx context.Context) (fleet.Actor, error) {
	a, _ := ctx.Value(actor{}).(fleet.Actor)
	a.By, a.Reason = strings.Clone(a.By), strings.Clone(a.Reason)
	if reason := a.Check(); reason != "" {
		return a, &RuleError{Argument: "actor", Reason: reason}
	}
	return a, nil
}
