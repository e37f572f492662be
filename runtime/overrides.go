package ratelimit

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Overrides change rules by their names while the program runs. An override in the store applies to all limiters with the same prefix, and
// lasts as long as the store's data. An override set by SetLocal applies to one limiter, and takes precedence over the store.
//
// A limiter reads the store's overrides in the background, about once a second while it is called. No call waits for that. At most 1,000
// overrides can be set, each of at most 1,000 bytes. If the store still has more than 2,000, the limiter keeps the overrides that it read
// before, and logs one line. If the limiter cannot read an override, an earlier override of the same name stays in force, and the limiter
// logs one line.
//
// Usage so far still counts. After a limit is raised, the difference passes at once. After it is lowered, nothing passes until enough
// permits have left the window. In a bucket, the number of missing permits stays the same. An override of Per makes the rule count from
// zero. When that override ends, the counts that the store still has of the earlier window count again.
type Overrides struct{ settings *settings }

// Overrides returns the limiter's overrides.
func (l *Limiter) Overrides() *Overrides { return &Overrides{&l.settings} }

// Set overrides the rules of a name for all limiters of this prefix on the store. It replaces any earlier override there. This limiter
// follows at once, the others within about two seconds. The name is the directive's name=. An unnamed rule has the name pkg.Type.Method, or
// pkg.Type if it is on a type. If the type has a prefix=, the name begins with it. It is no error if no rule has that name. If At is zero,
// Set sets it to now. If there are 1,000 overrides, Set removes those that have ended.
//
// The error is a *RuleError if no rule can have these values or there would be more than 1,000 overrides, a *StoreError, or wraps the
// context's. A rule that cannot have them stays as it is: see [Overrides.Err].
func (o *Overrides) Set(ctx context.Context, rule string, v Override) error {
	_, err := o.set(ctx, rule, v, nil)
	return err
}

// SetNew does what [Overrides.Set] does, unless the store already has an override of the name that has not ended. It reports whether it set
// the override. If several run at the same time, only one of them does. The errors are those of Set.
func (o *Overrides) SetNew(ctx context.Context, rule string, v Override) (bool, error) {
	return o.set(ctx, rule, v, func(old string) bool { return o.over(rule, old) })
}

// over reports whether a text of the store is an override that has ended.
func (o *Overrides) over(rule, text string) bool {
	v, err := parseOverride(rule, text)
	return err == nil && v.hasEnded(o.settings.limiter.now())
}

// Clear removes the override of a name from the store. It is no error if there is none. The error is a *StoreError, or wraps the context's.
func (o *Overrides) Clear(ctx context.Context, rule string) error {
	l := o.settings.limiter
	return o.settings.write(ctx, func() error { return l.store.Unset(ctx, l.list(listOverrides), rule) })
}

// All returns the overrides that are in the store now, including those that have ended. If it cannot read some of them, it returns the others
// and an error. If the store has more than 2,000 overrides, limiters do not follow them: All returns some of them, and an error. If the store
// cannot be read, the map is nil, and the error is a *StoreError or wraps the context's.
func (o *Overrides) All(ctx context.Context) (map[string]Override, error) {
	texts, err := o.settings.texts(ctx, listOverrides)
	if err != nil {
		return nil, storeError(ctx, "", err)
	}
	all, malformed := parseAll(texts, parseOverride)
	return all, joinErrors(tooLong(listOverrides, texts), joined(slices.Collect(maps.Values(malformed))))
}

// SetLocal overrides the rules of a name for this limiter. It replaces an earlier local override, and takes precedence over one in the
// store. It takes the same names as Set. The error is a *RuleError if no rule can have these values.
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

// ClearLocal removes the override that SetLocal set. If the store has one, it applies again.
func (o *Overrides) ClearLocal(rule string) {
	s := o.settings
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.own, rule)
	s.enforce()
}

// Err returns nil, or what is wrong with the overrides and blocks: the last attempt to read them from the store failed, or found too many, so
// that older ones stay in force; some of them could not be parsed; or an override has a value that a rule which was called cannot have, such
// as Per for a rule with Cron.
func (o *Overrides) Err() error {
	s := o.settings
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := slices.Collect(maps.Values(s.overrides.malformed))
	if s.failed != nil {
		errs = append(errs, &StoreError{Err: s.failed})
	}
	if s.many != nil {
		errs = append(errs, s.many)
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

// joined joins the errors, sorted by their texts.
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
		if err := o.settings.makeRoom(ctx, listOverrides, o.over, rule); err != nil {
			return err
		}
		set, err = l.store.Set(ctx, l.list(listOverrides), rule, string(text), replaces)
		return err
	})
	return set, err
}

// overridden is a rule with an override applied, or the error that says why the rule cannot have it.
type overridden struct {
	rule *prepared
	err  error
}

// maxOverridden is the number of overridden rules that are kept.
const maxOverridden = 10_000

// applied returns the rule with its override applied. pinned says that the override's limit also replaces limits that come with calls.
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

// change applies an override to a rule, and prepares the result.
func (s *settings) change(rule *prepared, v Override) (*prepared, error) {
	changed := v.apply(rule.Rule)
	window := changed.Window()
	p, err := changed.prepareAs(rule.shown, window, window+strings.TrimPrefix(rule.tag, rule.window))
	if err != nil {
		return nil, err
	}
	p.declared = rule
	return p, s.limiter.supports(p, p.Wait.Microseconds())
}
