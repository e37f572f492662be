package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// setOverride sets an override, merged with what is set.
func (t *tool) setOverride(ctx context.Context, args []string) error {
	if t.forever && t.forTime > 0 {
		return misused("override set: found -for and -forever; expected one of the two")
	}
	rules, settings, err := t.overridden(ctx, args[0])
	if err != nil {
		return err
	}
	tried := map[string]error{}
	return t.changeOverrides(ctx, "set", settings, func(before, s *fleet.Setting) error {
		s.Values = fleet.Values{} // it may be called again
		if before != nil && !t.replace {
			s.Values = before.Values
		}
		if err := t.merge(&s.Values); err != nil {
			return err
		}
		text, _ := json.Marshal(s.Values) // numbers, texts and a time: it never fails
		err, known := tried[string(text)]
		if !known {
			err = t.try(rules, s)
			tried[string(text)] = err
		}
		return err
	})
}

// overridden returns the rules of a name, and an override of each key of -key or -keys, or one of all keys.
func (t *tool) overridden(ctx context.Context, name string) (rules []ratelimit.UsedRule, all []*fleet.Setting, err error) {
	if name != fleet.SettingName(name) {
		return nil, nil, misused(fmt.Sprintf("an override is for all unnamed rules of a method: write %s", fleet.SettingName(name)))
	}
	if rules, err = t.findAll(ctx, name); err != nil {
		return nil, nil, err
	}
	keys, err := t.keysOf(t.key)
	keyless := !slices.ContainsFunc(rules, func(r ratelimit.UsedRule) bool { return r.Key != "" })
	if err == nil && keys[0] != "" && keyless && len(rules) > 0 {
		_, err = requests(rules, keys)
	}
	rule := anyOf(rules, name)
	for _, k := range keys {
		s := &fleet.Setting{Kind: fleet.Override, Rule: name, AllKeys: k == ""}
		if err == nil && k != "" {
			s.Key, err = t.subject(ratelimit.Request{Rule: rule, Key: k})
		}
		all = append(all, s)
	}
	return rules, all, err
}

// merge changes an override as the flags say.
func (t *tool) merge(v *fleet.Values) error {
	if t.limit == nil && t.factor == 0 && t.per == 0 && t.burst == 0 && t.mode == nil {
		return misused("override set: the change is missing: expected -limit, -factor, -per, -burst or -mode")
	}
	switch {
	case t.limit != nil && t.factor != 0:
		return misused("override set: found -limit and -factor; expected one of the two")
	case t.limit != nil:
		v.Limit, v.Factor = t.limit, 0
	case t.factor != 0:
		v.Limit, v.Factor = nil, t.factor
	}
	if t.per != 0 {
		v.Per = period.Format(t.per)
	}
	if t.burst != 0 {
		v.Burst = t.burst
	}
	if t.mode != nil {
		v.Mode = t.mode.String()
	}
	switch {
	case t.forTime > 0:
		v.Until = t.fleet.Now().Add(t.forTime).UTC().Truncate(time.Second)
	case t.forever:
		v.Until = time.Time{}
	case v.Until.IsZero():
		return misused("override set: the end is missing: write -for 1h, for example, or -forever")
	}
	return nil
}

// try returns an error if no rule can have the override, or, without -force, if one of the given rules cannot.
func (t *tool) try(rules []ratelimit.UsedRule, s *fleet.Setting) error {
	v, err := overrideOf(s)
	if err != nil {
		return err
	}
	if err := ratelimit.New(memstore.New()).Overrides().SetLocal(s.Rule, v); err != nil || t.force {
		return err
	}
	for _, r := range rules {
		if err := t.tryRule(r.Rule, s, v); err != nil {
			return fmt.Errorf("%w; set it anyway with -force", err)
		}
	}
	return nil
}

// tryRule returns an error if a rule cannot have an override, together with that for all keys. It asks a limiter of its own.
func (t *tool) tryRule(r ratelimit.Rule, s *fleet.Setting, v ratelimit.Override) error {
	l := ratelimit.New(memstore.New())
	if !s.AllKeys {
		if set := t.fleet.InForce().Of(s.Rule).All; set != nil {
			all, err := overrideOf(set)
			if err == nil {
				err = l.Overrides().SetLocal(s.Rule, all)
			}
			if err != nil {
				return err
			}
		}
		v.Key = "key"
	}
	if err := l.Overrides().SetLocal(s.Rule, v); err != nil {
		return err
	}
	if _, err := l.RuleFor(ratelimit.Request{Rule: r, Key: v.Key}); err != nil {
		return err
	}
	return l.Overrides().Err()
}

// overrideOf returns the override of a setting.
func overrideOf(s *fleet.Setting) (v ratelimit.Override, err error) {
	text, err := json.Marshal(s.Values)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	v.Until = time.Time{}
	return v, err
}

func (t *tool) clearOverride(ctx context.Context, args []string) error {
	_, settings, err := t.overridden(ctx, args[0])
	if err != nil {
		return err
	}
	return t.changeOverrides(ctx, "clear", settings, func(_, s *fleet.Setting) error {
		s.Cleared = true
		return nil
	})
}

func (t *tool) listOverrides(ctx context.Context, args []string) error {
	settings, err := t.inForce(ctx, fleet.Override, args)
	if settings == nil {
		return err
	}
	var rows []setting
	for _, s := range settings {
		rows = append(rows, shownSetting(s))
	}
	return cmp.Or(printTable(t, rows, t.nothing("no override is in force"), "RULE, KEY, CHANGE, UNTIL, SET BY, SET AT, REASON", func(s *setting) []string {
		return []string{s.Rule, cmp.Or(s.Key, "all"), arguments(&s.Values), cmp.Or(local(s.Until), "for ever"), s.By, local(s.At), s.Reason}
	}, t.withKept(nil)...), err)
}

// inForce returns the settings of a kind that have not ended, of the rule in args or of all. If some cannot be read, it returns the others and
// an error. If none can, it returns nil.
func (t *tool) inForce(ctx context.Context, kind fleet.Kind, args []string) ([]*fleet.Setting, error) {
	all, err := t.storedSettings(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s *fleet.Setting) bool {
		return s.Kind != kind || len(args) > 0 && s.Rule != fleet.SettingName(args[0])
	})
	if len(all) == 0 && len(args) > 0 {
		if _, err := t.named(ctx, args[0], func(rule string) bool { return fleet.SettingName(rule) == fleet.SettingName(args[0]) }); err != nil {
			return nil, err
		}
	}
	return append([]*fleet.Setting{}, all...), t.malformed()
}

// malformed returns the settings that cannot be read as one error, or nil.
func (t *tool) malformed() error {
	var texts []string
	for _, err := range t.fleet.Status().Malformed {
		texts = append(texts, err.Error())
	}
	if texts == nil {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}
