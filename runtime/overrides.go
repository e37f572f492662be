package ratelimit

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Overrides change rules by their names while the program runs. Those in the store hold for all limiters of one prefix on it, and last as
// long as the store's data. Those set by SetLocal hold for one limiter, and come before those in the store.
//
// A limiter reads the store's overrides in the background, about once a second while it is called. No call waits for that. A limiter
// follows at most 1,000 overrides, each of at most 1,000 bytes. If the store has more, the limiter keeps to the overrides that it read
// before, and logs one line. An override that is not understood changes nothing: an earlier override of the same name still holds, and the
// limiter logs one line.
//
// Usage so far still counts. After a limit is raised, the difference passes at once; after it is lowered, nothing passes until enough
// permits have left the window. A bucket keeps the number of permits that are missing. Under another Per a rule starts from zero. When that
// override ends, what the store still has of the earlier window counts again.
type Overrides struct{ settings *settings }

// Overrides returns the limiter's overrides.
func (l *Limiter) Overrides() *Overrides { return &Overrides{&l.settings} }

// Set changes the rules of a name for all limiters of this prefix on the store, instead of any earlier override there. This limiter follows
// at once, the others within about two seconds. The name is that of a directive's name=, or pkg.Type.Method, or pkg.Type for unnamed rules
// on a type; each with the prefix= of the type, if it has one. It is no error if no rule has that name. At is set to now if it is zero.
//
// The error is a *RuleError if no rule can be like that, a *StoreError, or wraps the context's. A rule that the override does not suit
// stays as it is: see [Overrides.Err].
func (o *Overrides) Set(ctx context.Context, rule string, v Override) error {
	_, err := o.set(ctx, rule, v, nil)
	return err
}

// SetNew is [Overrides.Set] if the store has no override of the name, or one that has ended, and otherwise changes nothing. It reports
// whether it set one: of several at the same time, one does. The errors are those of Set.
func (o *Overrides) SetNew(ctx context.Context, rule string, v Override) (bool, error) {
	return o.set(ctx, rule, v, func(old string) bool {
		before, err := parseOverride(rule, old)
		return err == nil && before.hasEnded(o.settings.limiter.now())
	})
}

// Clear removes the override of a name from the store. It is no error if there is none. The error is a *StoreError, or wraps the context's.
func (o *Overrides) Clear(ctx context.Context, rule string) error {
	l := o.settings.limiter
	return o.settings.write(ctx, func() error { return l.store.Unset(ctx, l.list(listOverrides), rule) })
}

// All returns the overrides that are in the store now, also those that have ended. If some are not understood, the error says so, and the
// others are returned. If the store cannot be read, the error is a *StoreError or wraps the context's.
func (o *Overrides) All(ctx context.Context) (map[string]Override, error) {
	texts, err := o.settings.texts(ctx, listOverrides)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, storeError(ctx, "", err)
	}
	all, malformed := parseAll(texts, parseOverride)
	return all, joined(slices.Collect(maps.Values(malformed)))
}

// SetLocal changes the rules of a name for this limiter, instead of any earlier override of them here or in the store. It takes
// the names that Set takes. The error is a *RuleError if no rule can have these values.
func (o *Overrides) SetLocal(rule string, v Override) error {
	if err := v.check(rule); err != nil {
		return err
	}
	s := o.settings
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[rule] = v
	s.enforce()
	return nil
}

// ClearLocal removes the override that SetLocal set. The store's override then holds, if there is one.
func (o *Overrides) ClearLocal(rule string) {
	s := o.settings
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.own, rule)
	s.enforce()
}

// Err returns what is wrong with the overrides, or nil: the store's lists of overrides and blocks could not be read the last time, so that
// older ones hold; some overrides are not understood; or some do not suit a rule that was called, such as a Per for a rule with Cron.
func (o *Overrides) Err() error {
	s := o.settings
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := slices.Collect(maps.Values(s.overrides.malformed))
	if s.failed != nil {
		errs = append(errs, &StoreError{Err: s.failed})
	}
	s.drop()
	if in := s.current.Load(); in != nil {
		in.rules.Range(func(_, by any) bool {
			if err := by.(*overridden).err; err != nil {
				errs = append(errs, err)
			}
			return true
		})
	}
	return joined(errs)
}

// joined returns the errors as one, in the order of their texts.
func joined(errs []error) error {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return joinErrors(errs...)
}

func (o *Overrides) set(ctx context.Context, rule string, v Override, replaces func(old string) bool) (set bool, err error) {
	if err := v.check(rule); err != nil {
		return false, err
	}
	if v.At.IsZero() {
		v.At = time.Now().UTC().Truncate(time.Second)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return false, &RuleError{Rule: rule, Argument: "override", Reason: "found an until or at outside the years 0 to 9999"}
	}
	l := o.settings.limiter
	err = o.settings.write(ctx, func() (err error) {
		set, err = l.store.Set(ctx, l.list(listOverrides), rule, string(text), replaces)
		return err
	})
	return set, err
}

// overridden is a rule after an override, or why it stays as it was.
type overridden struct {
	rule *prepared
	err  error
}

// maxOverridden is how many overridden rules are kept.
const maxOverridden = 10_000

// applied returns what a rule is by now, and whether its limit holds against those that calls bring along.
func (s *settings) applied(rule *prepared) (_ *prepared, pinned bool) {
	in := s.current.Load()
	if in == nil {
		return rule, false
	}
	v, ok := in.overrides[rule.Name]
	switch {
	case !ok:
		return rule, false
	case v.hasEnded(s.limiter.now()):
		s.mu.Lock()
		s.drop()
		s.mu.Unlock()
		return s.applied(rule)
	}
	known, ok := in.rules.Load(rule)
	if !ok {
		p, err := s.change(rule, v)
		known = &overridden{p, err}
		if in.count.Add(1) <= maxOverridden {
			in.rules.Store(rule, known)
		}
	}
	if by := known.(*overridden); by.err == nil {
		return by.rule, v.Limit != nil
	}
	return rule, false
}

// change prepares a rule as an override changes it.
func (s *settings) change(rule *prepared, v Override) (*prepared, error) {
	changed := v.apply(rule.Rule)
	window := changed.Window()
	p, err := changed.prepareAs(rule.shown, window, window+strings.TrimPrefix(rule.tag, rule.window))
	if err != nil {
		return nil, err
	}
	return p, s.limiter.supports(p, p.Wait.Microseconds())
}
