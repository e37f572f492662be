package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// Wish is what an override should change. A field that is nil or zero leaves what an earlier override of the same rule and key says.
type Wish struct {
	Limit   *int64
	Factor  float64
	Per     time.Duration
	Burst   int64
	Mode    *ratelimit.Mode
	For     time.Duration // how long; 0 leaves the end
	Forever bool          // no end
	Replace bool          // forget what an earlier override says
}

// ErrEnd is the error of an override that has no end yet, and gets none.
const ErrEnd = Wrong("the end is missing")

// Override changes a rule, or some keys of it.
func (p *Prefix) Override(ctx context.Context, by fleet.Actor, t Target, w Wish) (Done, error) {
	rules, settings, err := p.overridden(ctx, &t, false)
	if err != nil {
		return Done{}, err
	}
	tried := map[string]error{}
	done, err := p.changeOverrides(ctx, by, "set", settings, func(before, s *fleet.Setting) error {
		s.Values = fleet.Values{} // it may be called again
		if before != nil && !w.Replace {
			s.Values = before.Values
		}
		if err := p.merge(&s.Values, w); err != nil {
			return err
		}
		text, _ := json.Marshal(s.Values) // numbers, texts and a time: it never fails
		id := string(text)
		if fleet.IsGlob(s.Rule) || len(p.fleet.InForce().ByPattern(s.Rule).Keys()) > 0 { // others may be for some of the keys
			id += s.Name()
		}
		err, known := tried[id]
		if !known {
			err = p.try(rules, s, t.Force)
			tried[id] = err
		}
		return err
	})
	for _, r := range rules[:min(len(rules), shownRules)] {
		if t.Force {
			break // perhaps no program declares it
		}
		done.Notes = append(done.Notes, r.Name+" declares "+Limits(r))
	}
	if more := len(rules) - shownRules; more > 0 && !t.Force {
		done.Notes = append(done.Notes, t.Rule+" is for "+Count(more, "rule")+" more")
	}
	return done, err
}

// ClearOverride ends the override of a rule, or of some keys of it.
func (p *Prefix) ClearOverride(ctx context.Context, by fleet.Actor, t Target) (Done, error) {
	p.allowUnused(ctx, &t)
	_, settings, err := p.overridden(ctx, &t, true)
	if err != nil {
		return Done{}, err
	}
	return p.changeOverrides(ctx, by, "clear", settings, func(_, _ *fleet.Setting) error { return nil })
}

// overridden returns the rules of a target, and an override of each of its keys, or one of all keys. They are made to be set or to be cleared.
func (p *Prefix) overridden(ctx context.Context, t *Target, cleared bool) (rules []ratelimit.UsedRule, all []*fleet.Setting, err error) {
	if name := fleet.SettingName(t.Rule); name != t.Rule {
		return nil, nil, wrongf("an override is for all unnamed rules of a method: write %s", name)
	}
	if rules, err = p.ofSettings(ctx, t.Rule, t.Force); err != nil {
		return nil, nil, err
	}
	of := rules[0].Rule
	if fleet.IsGlob(t.Rule) {
		of = ratelimit.Rule{Name: t.Rule}
	}
	for _, k := range t.keys() {
		if err := p.checkSecret(ctx, k, rules); err != nil && !t.Force {
			return nil, nil, err
		}
		s := &fleet.Setting{Kind: fleet.Override, Rule: t.Rule, AllKeys: k.Text == "", Cleared: cleared}
		if !s.AllKeys {
			err = cmp.Or(err, p.setKey(s, of, k))
		}
		all = append(all, s)
	}
	return rules, all, err
}

// changeOverrides changes overrides, each of which fill fills. Before is what an override replaces, or nil.
func (p *Prefix) changeOverrides(ctx context.Context, by fleet.Actor, what string, all []*fleet.Setting, fill func(before, s *fleet.Setting) error) (done Done, err error) {
	before := map[string]*fleet.Setting{}
	var wrong error
	err = p.change(ctx, fleet.Edit{Actor: by, What: what, Settings: all, Each: func(old, s *fleet.Setting) bool {
		before[s.Name()] = old
		wrong = fill(old, s)
		return wrong == nil
	}})
	if err := cmp.Or(wrong, err); err != nil {
		return done, err
	}
	for _, s := range all { // as they were written
		done.Changed = append(done.Changed, Changed{s.Kind, s.Rule, key.Shown(s.Key), s.Match, valuesOf(before[s.Name()]), valuesOf(s)})
	}
	return done, nil
}

// change makes an edit, and tells the program's observers.
func (p *Prefix) change(ctx context.Context, e fleet.Edit) error {
	if err := checkActor(e.Actor); err != nil {
		return err
	}
	done, err := p.fleet.Change(ctx, e)
	if err == nil && !done {
		err = errors.New("nothing was changed")
	}
	if err == nil {
		(*decide.Limiter)(p.written).TellChange(ratelimit.WithActor(ctx, e.Actor.By, e.Actor.Reason), e.What, e.Settings)
	}
	p.forget()
	return err
}

// valuesOf returns what a setting sets, or nil if nothing is set.
func valuesOf(s *fleet.Setting) *fleet.Values {
	if s == nil || s.Cleared {
		return nil
	}
	return &s.Values
}

// merge changes an override as a wish says.
func (p *Prefix) merge(v *fleet.Values, w Wish) error {
	switch {
	case w.Limit == nil && w.Factor == 0 && w.Per == 0 && w.Burst == 0 && w.Mode == nil:
		return Wrong("the change is missing: expected limit, factor, per, burst or mode")
	case w.Limit != nil && w.Factor != 0:
		return Wrong("found limit and factor; expected one of the two")
	case math.IsNaN(w.Factor) || math.IsInf(w.Factor, 0): // which no JSON has
		return wrongf("factor: found %g; expected 0.001 to 1000", w.Factor)
	case w.For > 0 && w.Forever:
		return Wrong("found an end and forever; expected one of the two")
	case w.Limit != nil:
		v.Limit, v.Factor = w.Limit, 0
	case w.Factor != 0:
		v.Limit, v.Factor = nil, w.Factor
	}
	if w.Per != 0 {
		v.Per = period.Format(w.Per)
	}
	if w.Burst != 0 {
		v.Burst = w.Burst
	}
	if w.Mode != nil {
		v.Mode = w.Mode.String()
	}
	switch {
	case w.For > 0:
		v.Until = p.Now().Add(w.For).UTC().Truncate(time.Second)
	case w.Forever:
		v.Until = time.Time{}
	case v.Until.IsZero():
		return ErrEnd
	}
	return nil
}

// try returns an error if no rule can have an override, or, without force, if one of the given rules cannot.
func (p *Prefix) try(rules []ratelimit.UsedRule, s *fleet.Setting, force bool) error {
	v, err := overrideOf(s)
	if err != nil {
		return err
	}
	if err := ratelimit.New(memstore.New()).Overrides().SetLocal(s.Rule, v); err != nil || force {
		return err
	}
	after := p.fleet.InForce().With(slices.Values([]*fleet.Setting{s}), p.Now())
	for _, r := range rules {
		if err := p.tryRule(r.Rule, s, s.Key, after); err != nil {
			return fmt.Errorf("%w; ratelimitctl sets it anyway with -force", err)
		}
	}
	return nil
}

// tryRule returns an error if a rule cannot have an override, or another one because of it. It tries it with those that are in force for a subject too,
// or for "" with those of all keys. After is what is in force with the override.
func (p *Prefix) tryRule(r ratelimit.Rule, s *fleet.Setting, subject string, after *fleet.InForce) error {
	rule, err := prepared(r)
	if err != nil {
		return err
	}
	overrides := func(in *fleet.InForce) []*fleet.Setting {
		return in.ForKey(fleet.SettingName(r.Name), subject, subject, false).Overrides
	}
	all := overrides(after)
	if !slices.Contains(all, s) {
		all = append([]*fleet.Setting{s}, all...) // of some keys
	}
	known, wrong := unusable(rule, overrides(p.fleet.InForce())), unusable(rule, all)
	for _, other := range append([]*fleet.Setting{s}, all...) {
		if err := wrong[other]; err != nil && (other == s || known[other] == nil) {
			return err
		}
	}
	return nil
}

// unusable returns why a rule cannot have some of the overrides for a key beside more exact ones, which come first.
func unusable(rule *decide.Rule, overrides []*fleet.Setting) map[*fleet.Setting]error {
	var usable []*fleet.Setting
	wrong := map[*fleet.Setting]error{}
	for _, s := range overrides {
		more := append(slices.Clone(usable), s)
		if _, err := rule.Declared.Override(rule, more); err != nil {
			wrong[s] = err
		} else {
			usable = more
		}
	}
	return wrong
}
