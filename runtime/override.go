package ratelimit

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Override changes the rules of a name while the program runs. What is zero stays as the rule says; [NoPermits] and
// [ModeEnforceNow] say what a zero cannot. A rule in shadow or trigger mode does without its Wait, Queue and Block.
//
// The history goes on. Limit, Burst and Mode are no part of a rule's state, so that a changed limit counts at once what is
// used in the present window: a raised one admits the difference, under a lowered one nothing passes until enough permits
// have left. A bucket's history is the time at which it is full again: a raised limit fills it faster from then on. Per is
// part of the state: another period starts from nothing, and the way back finds what is still known of the earlier one.
// While limiters disagree on a limit, each counts what all have admitted, and admits up to its own; but where one makes a
// sliding window a trigger, no more is remembered of it than that trigger's limit.
type Override struct {
	Limit int64 // also instead of the limit that a call brings along
	Per   time.Duration
	Burst int64
	Mode  Mode
}

const (
	// NoPermits is the Limit of an [Override] to 0, which refuses everything.
	NoPermits int64 = -1
	// ModeEnforceNow is the Mode of an [Override] that makes a rule in shadow or trigger mode enforce.
	ModeEnforceNow Mode = 255
)

// Override changes the rules called ruleName for this limiter, instead of any earlier override of them here or in the store.
// Rules that are to be changed one by one need names of their own; those of a method that are not named are all called
// pkg.Type.Method. A name includes the prefix= of its type: name=login and prefix=shop give shop.login. A name that no rule has
// is no error, since a limiter knows of a rule when it is called; ratelimit -list shows all names. The error is a *RuleError
// about what no rule can have. A rule that the override does not suit, such as one of Cron with a Per, stays as it is: see
// [Limiter.OverrideError].
func (l *Limiter) Override(ruleName string, o Override) error {
	if err := o.check(ruleName); err != nil {
		return err
	}
	l.overrides.change(func(s *overrides) {
		if s.own == nil {
			s.own = make(map[string]Override)
		}
		s.own[ruleName] = o
	})
	return nil
}

// ClearOverride ends what Override began: the rules called ruleName are what the store's override makes of them, if there is
// one, or else as they were written.
func (l *Limiter) ClearOverride(ruleName string) {
	l.overrides.change(func(s *overrides) { delete(s.own, ruleName) })
}

// OverrideError returns what is wrong with the overrides in force, or nil: that the store's could not be read the last time,
// so that older ones are followed; those that are not understood; and those that did not suit a rule which was called
// since. Such overrides do nothing. Those whose name no rule has are not among them.
func (l *Limiter) OverrideError() error {
	errs := l.overrides.problems()
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// check returns what is wrong with o for any rule: one that can have all of o is tried.
func (o Override) check(ruleName string) error {
	rule := Rule{Name: ruleName, Algorithm: FixedWindow, Limit: maxBucketLimit, Per: time.Minute}
	if o.Burst != 0 {
		rule.Algorithm = TokenBucket
	}
	switch {
	case o == Override{}:
		return rule.wrong("override", "found no change; for a limit of 0 write NoPermits, for enforce ModeEnforceNow")
	case o.Limit < NoPermits:
		return rule.wrong("limit", "found %d; expected 1 or more, or NoPermits", o.Limit)
	}
	return o.apply(rule).check()
}

// apply returns the rule that o makes of r.
func (o Override) apply(r Rule) Rule {
	if o.Limit != 0 {
		r.Limit = max(0, o.Limit)
	}
	if o.Per != 0 {
		r.Per = o.Per
	}
	if o.Burst != 0 {
		r.Burst = o.Burst
	}
	switch o.Mode {
	case ModeEnforce:
	case ModeEnforceNow:
		r.Mode = ModeEnforce
	default:
		r.Mode, r.Wait, r.Queue, r.Block = o.Mode, 0, 0, 0
	}
	return r
}

// overrides is all that a limiter knows of overrides.
type overrides struct {
	table atomic.Pointer[overrideTable] // nil if there are none: a call then pays for one load

	mu    sync.Mutex
	own   map[string]Override // they hide the fleet's
	fleet fleetOverrides
}

// overrideTable is the overrides in force, by the names of rules, and the rules that they made. It is replaced as a whole.
type overrideTable struct {
	overrides map[string]Override
	rules     sync.Map // *prepared to *overridden
	count     atomic.Int64
}

// overridden is a rule after an override, or why it stays as it was.
type overridden struct {
	rule *prepared
	err  error
}

// change changes the overrides and puts them in force.
func (s *overrides) change(change func(*overrides)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
	all := make(map[string]Override, len(s.fleet.overrides)+len(s.own))
	for _, some := range []map[string]Override{s.fleet.overrides, s.own} {
		for name, o := range some {
			all[name] = o
		}
	}
	if len(all) == 0 {
		s.table.Store(nil)
	} else {
		s.table.Store(&overrideTable{overrides: all})
	}
}

// overridden returns what a rule is by now, and whether its limit holds against those that calls bring along.
func (l *Limiter) overridden(rule *prepared) (_ *prepared, pinned bool) {
	if table := l.overrides.table.Load(); table != nil {
		return l.override(table, rule)
	}
	return rule, false
}

func (l *Limiter) override(table *overrideTable, rule *prepared) (_ *prepared, pinned bool) {
	o, ok := table.overrides[rule.Name]
	if !ok {
		return rule, false
	}
	known, ok := table.rules.Load(rule)
	if !ok {
		p, err := l.prepareOverridden(rule, o)
		known = &overridden{p, err}
		if table.count.Add(1) <= maxRules {
			table.rules.Store(rule, known)
		}
	}
	if by := known.(*overridden); by.err == nil {
		return by.rule, o.Limit != 0
	}
	return rule, false
}

func (l *Limiter) prepareOverridden(rule *prepared, o Override) (*prepared, error) {
	suffix := strings.TrimPrefix(rule.numbers.ID.Value().Window, rule.Window())
	p, err := o.apply(rule.Rule).prepare(suffix)
	if err == nil {
		err = l.supports(p, p.Wait.Microseconds())
	}
	return p, err
}

func (s *overrides) problems() []error {
	s.mu.Lock()
	errs := s.fleet.problems()
	s.mu.Unlock()
	if table := s.table.Load(); table != nil {
		table.rules.Range(func(_, by any) bool {
			if err := by.(*overridden).err; err != nil {
				errs = append(errs, err)
			}
			return true
		})
	}
	return errs
}
