package ratelimit

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Overrides change rules by their names while the program runs, for all keys or for one. An override in the store applies to all limiters with
// the same prefix, and lasts as long as the store's data. An override set by SetLocal applies to one limiter, and takes the place of the store's
// override of the same rule and key.
//
// A limiter follows the store's overrides once a second, as soon as a wrapper or a middleware is made with it; without one, from the first call,
// Peek or Check on. No call waits for that. At most 10,000 overrides, blocks and pauses can be set, each of at most 1,000 bytes; see also
// [WithActor]. If the limiter cannot read an override, an earlier override of the same rule and key stays in force. If the store loses its
// data, the limiter keeps the overrides that it knows in force until they end. In both cases it logs one line: see [Overrides.Err].
//
// Usage so far still counts. After a limit is raised, the difference passes at once. After it is lowered, nothing passes until enough
// permits have left the window. In a bucket, the number of missing permits stays the same. An override of Per makes the rule count from
// zero. When that override ends, the counts that the store still has of the earlier window count again.
type Overrides struct{ limiter *Limiter }

// Overrides returns the limiter's overrides.
func (l *Limiter) Overrides() *Overrides { return &Overrides{l} }

// Set overrides the rules of a name, or one key of them, for all limiters of this prefix on the store. It replaces any earlier override of the
// same rule and key, or Match, there. This limiter follows at once, the others within about two seconds. Under [WithSubjectHash] the key is hashed,
// unless a program has said that the rule has HashNever. The name is the directive's name=. An unnamed rule has the name pkg.Type.Method, or
// pkg.Type if it is on a type. If the type has a prefix=, the name begins with it. It is no error if no rule has that name. Set ignores By, Reason
// and At: see [WithActor].
//
// The name may be a glob: shop.* is all rules whose names begin with shop. and a dot, and * is all rules. If several overrides are for a key, the
// most exact one that says something of a field wins: that of the key, then that of the longest network, of the longest text, and of all keys; of each,
// that of the rule by its name, and then that of the longest glob. At most 1,000 overrides, blocks and pauses can have a Match or a glob. A key is in a
// network if it is an address, or a network in it such as 2001:db8::/64; a key of several parts is in none. Networks match keys also if these are
// hashed, and are themselves kept as text. A text matches no hashed key. Under a glob, a Key is hashed if the limiter hashes.
//
// The error is a *RuleError if no rule can have these values or there is no room for more, a *StoreError, or wraps the context's. A rule that
// cannot have the values stays as it is: see [Overrides.Err].
func (o *Overrides) Set(ctx context.Context, rule string, v Override) error {
	_, err := o.set(ctx, rule, v, nil)
	return err
}

// SetNew does what [Overrides.Set] does, unless the store already has an override of the rule and key that has not ended. It reports whether it
// set the override. If several run at the same time, only one of them does. The errors are those of Set.
func (o *Overrides) SetNew(ctx context.Context, rule string, v Override) (bool, error) {
	return o.set(ctx, rule, v, func(before, _ *fleet.Setting) bool { return before == nil })
}

func (o *Overrides) set(ctx context.Context, rule string, v Override, each func(before, s *fleet.Setting) bool) (bool, error) {
	if err := v.check(rule); err != nil {
		return false, err
	}
	s, err := o.limiter.overrideFor(ctx, rule, v.Key, v.Match, false)
	if err != nil {
		return false, err
	}
	v.By, v.Reason = "", ""
	s.Values = v.values()
	return o.limiter.changeSettings(ctx, fleet.Edit{What: "set", Settings: []*fleet.Setting{s}, Each: each})
}

// overrideFor returns an override without values, for a key, for the keys that a pattern matches if match is not "", or for all keys if both are "". If
// the limiter hashes subjects, the rule says whether it does so here. A rule that no program has used hashes.
func (l *Limiter) overrideFor(ctx context.Context, name, text, match string, cleared bool) (*fleet.Setting, error) {
	s := &fleet.Setting{Kind: fleet.Override, Rule: name, AllKeys: text == "" && match == "", Cleared: cleared}
	hash, known := HashSubject, false
	if l.machine().Hashes() && !s.AllKeys {
		var err error
		if hash, known, err = l.hashOf(ctx, name); err != nil {
			return nil, err
		}
	}
	if match == "" {
		s.Key = l.machine().Subject(hash == HashNever, text)
		return s, nil
	}
	return s, l.match(s, match, known && hash == HashSubject)
}

// match makes a setting one for the keys that a pattern matches. isHashed says that the keys of its rule are hashed if the limiter hashes. A text matches
// none of them, but a setting with one can be cleared: a limiter that does not hash may have set it.
func (l *Limiter) match(s *fleet.Setting, pattern string, isHashed bool) (err error) {
	s.Match = true
	if s.Key, err = l.machine().ParseMatch(pattern, isHashed && !s.Cleared); err != nil {
		return &RuleError{Rule: s.Rule, Argument: "match", Reason: err.Error()}
	}
	return nil
}

// hashOf returns whether the keys of the rules of a name are hashed, as programs have said. It reports false if none has.
func (l *Limiter) hashOf(ctx context.Context, name string) (hash Hash, known bool, err error) {
	if l.machine().UsesPlainKeys(name) {
		return HashNever, true, nil
	}
	rules, err := l.Rules(ctx)
	if i := slices.IndexFunc(rules, func(r UsedRule) bool { return fleet.SettingName(r.Name) == name }); i >= 0 {
		return rules[i].Hash, true, nil
	}
	return HashSubject, false, err
}

// Clear removes the override of a rule and key from the store. With the key "" it removes the override for all keys, and not those for single
// keys. It is no error if there is none. The error is a *RuleError if no rule can have the name, a *StoreError, or wraps the context's.
func (o *Overrides) Clear(ctx context.Context, rule, key string) error {
	return o.clear(ctx, rule, key, "")
}

// ClearMatch removes the override of a rule with a Match, as Clear does with one of a key. It removes no override of a network or a text within match.
func (o *Overrides) ClearMatch(ctx context.Context, rule, match string) error {
	if match == "" {
		return (&Rule{Name: rule}).wrong("match", "found nothing; expected one, or Clear for all keys")
	}
	return o.clear(ctx, rule, "", match)
}

func (o *Overrides) clear(ctx context.Context, rule, key, match string) error {
	if err := checkNameOrGlob(rule); err != nil {
		return err
	}
	s, err := o.limiter.overrideFor(ctx, rule, key, match, true)
	if err != nil {
		return err
	}
	_, err = o.limiter.changeSettings(ctx, fleet.Edit{What: "clear", Settings: []*fleet.Setting{s}})
	return err
}

// changeSettings makes an edit in the store, in the name of the actor of ctx. It reports whether the edit was made.
func (l *Limiter) changeSettings(ctx context.Context, e fleet.Edit) (done bool, err error) {
	if e.Actor, err = actorOf(ctx); err != nil {
		return false, err
	}
	for _, s := range e.Settings {
		s.Rule, s.Key, s.By = strings.Clone(s.Rule), strings.Clone(s.Key), strings.Clone(s.By)
	}
	done, err = l.machine().Fleet().Change(ctx, e)
	if unfit, ok := errors.AsType[*fleet.Unfit](err); ok {
		return false, &RuleError{Rule: e.Settings[0].Rule, Argument: e.What, Reason: unfit.Reason}
	}
	if done {
		l.machine().TellChange(ctx, e.What, e.Settings)
	}
	return done, l.machine().StoreError(ctx, "", err)
}

// settingsOf returns settings of the store for observers. A block is one without values.
func settingsOf(all []*fleet.Setting) []Setting {
	settings := make([]Setting, len(all))
	for i, s := range all {
		v, _ := overrideOf(s)
		settings[i] = Setting{s.Rule, v}
	}
	return settings
}

// List returns the overrides that are in the store now, sorted by rule and key, including those that ended within a day. If some of them
// cannot be read, List returns the others and an error. If the store cannot be read, the slice is nil, and the error is a *StoreError or wraps
// the context's.
func (o *Overrides) List(ctx context.Context) ([]Setting, error) {
	all, err := o.limiter.machine().Fleet().List(ctx)
	if err != nil {
		return nil, o.limiter.machine().StoreError(ctx, "", err)
	}
	found, malformed := []Setting{}, o.limiter.machine().Fleet().Status().Malformed
	for _, s := range all {
		if s.Kind != fleet.Override {
			continue
		}
		if v, err := overrideOf(s); err == nil {
			found = append(found, Setting{s.Rule, v})
		} else {
			malformed = append(malformed, err)
		}
	}
	return found, joined(malformed)
}

// SetLocal overrides the rules of a name, or one key of them, for this limiter. It replaces an earlier local override of the same rule and key,
// and takes the place of one in the store. It takes the same names as Set. One with a Match or a glob for which there is no room beside those in the
// store is not in force: see [Overrides.Err]. The error is a *RuleError if no rule can have these values.
func (o *Overrides) SetLocal(rule string, v Override) error {
	if err := v.check(rule); err != nil {
		return err
	}
	s := &fleet.Setting{Kind: fleet.Override, Rule: strings.Clone(rule), Key: strings.Clone(v.Key), AllKeys: v.Key == "" && v.Match == "", Values: v.values()}
	if v.Match != "" {
		if err := o.limiter.match(s, v.Match, o.limiter.machine().UsesHashedKeys(rule)); err != nil {
			return err
		}
		s.Key = strings.Clone(s.Key)
	}
	o.limiter.machine().SetLocal(s)
	return nil
}

// ClearLocal removes the override that SetLocal set. If the store has one, it applies again.
func (o *Overrides) ClearLocal(rule, key string) { o.limiter.machine().ClearLocal(rule, key, false) }

// ClearLocalMatch removes the override with a Match that SetLocal set.
func (o *Overrides) ClearLocalMatch(rule, match string) {
	if pattern, err := o.limiter.machine().ParseMatch(match, false); err == nil {
		o.limiter.machine().ClearLocal(rule, pattern, true)
	}
}

// Err returns nil, or what is wrong with the overrides, blocks and pauses:
//
//   - The last attempt to read them from the store failed, or the store has lost them. What this process knows stays in force.
//   - Some of them could not be parsed.
//   - An override has a value that a rule in use cannot have, such as Per for a rule with Cron or Every, or a Per that would give two different rules of
//     a method one count.
func (o *Overrides) Err() error {
	status, errs := o.limiter.machine().Fleet().Status(), o.limiter.unusable()
	if status.Err != nil {
		errs = append(errs, &StoreError{Err: status.Err})
	}
	if status.Lost > 0 {
		errs = append(errs, errLost)
	}
	return joined(errs)
}

// unusable returns an error for each setting that cannot be parsed, or that a rule cannot have.
func (l *Limiter) unusable() []error {
	return append(slices.Clone(l.machine().Fleet().Status().Malformed), l.machine().Unusable()...)
}

var errLost = errors.New("the store lost its overrides, blocks and pauses; those that this process knows stay in force until they end")

// joined joins the errors, sorted by their texts.
func joined(errs []error) error {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return printable.Join(slices.CompactFunc(errs, func(a, b error) bool { return a.Error() == b.Error() })...)
}
