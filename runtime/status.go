package ratelimit

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Status is what a limiter knows of its store, its rules and the settings in force. It is for metrics.
type Status struct {
	StoreUp  bool         // no decision failed within five seconds, and neither did the last reading of the settings
	Settings int          // overrides and blocks in force
	Unusable int          // overrides and blocks that cannot be read, or that a rule cannot have: see [Overrides.Err]
	Lost     int          // overrides and blocks in force that the store has lost
	Read     time.Time    // when the settings were last read, by this process's clock; zero for a store in this process, and before the first time
	Rules    []RuleStatus // the rules of wrappers, of Check and of calls, by name
}

// RuleStatus is a rule that a limiter knows.
type RuleStatus struct {
	Name     string // as in events
	Limit    int64  // permits per window for keys without settings of their own. Of rules with one name and several windows, the least
	Computed bool   // each call brings its limit, so Limit is 0 and says nothing
}

// Status returns what the limiter knows now. It asks no store.
func (l *Limiter) Status() Status {
	known := l.fleet.Status()
	s := Status{StoreUp: known.Err == nil && !l.failedLately(), Lost: known.Lost, Read: l.fleet.Read(), Rules: l.ruleStatus()}
	for setting := range l.own.over(l.fleet).All() {
		if l.holding(setting) != nil {
			s.Settings++
		}
	}
	s.Unusable = len(l.unusable())
	return s
}

func (l *Limiter) ruleStatus() []RuleStatus {
	var all []RuleStatus
	in := l.own.over(l.fleet)
	for _, rule := range l.used.all() {
		now := l.ruleIn(in, rule)
		all = append(all, RuleStatus{rule.shown, now.Limit, now.Computed})
	}
	slices.SortFunc(all, func(a, b RuleStatus) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.least(), b.least()))
	})
	return slices.CompactFunc(all, func(a, b RuleStatus) bool { return a.Name == b.Name })
}

// least returns the limit for a comparison, in which a computed one is the greatest.
func (r RuleStatus) least() int64 {
	if r.Computed {
		return math.MaxInt64
	}
	return r.Limit
}

// ruleIn returns what a rule is for keys without settings of their own. in may be nil.
func (l *Limiter) ruleIn(in *fleet.InForce, rule *prepared) *prepared {
	if of := rule.settingsIn(in); of != nil {
		if override := l.holding(of.All); override != nil {
			return l.applied(rule, nil, override)
		}
	}
	return rule
}

// Ping returns nil if the limiter is ready to decide: its store answers and grants all permissions that decisions need, and the overrides and
// blocks in it have been read. Use Ping when a program starts, not in its /readyz: while the store fails, failure policies decide, and a
// readiness check that fails in all programs leaves a balancer with none. Decisions do not need Ping. Some seconds after a wrapper is made or a
// rule is first used, the limiter itself checks the permissions that the rule needs, and logs one line if some are missing.
//
// The permissions that decisions need depend on their rules. Ping checks those of the rules that limiters of the prefix used within the last
// day, and of the rules that were given to [Limiter.Check].
//
// The error is a *StoreError, or wraps the context's. A *StoreError says what to do about an unknown user, a wrong password, a missing
// permission, a server that is too old, or a read-only replica.
func (l *Limiter) Ping(ctx context.Context) error {
	err := l.store.Ping(ctx, l.prefix, l.used.numbers())
	if err == nil {
		err = l.fleet.Follow(ctx)
	}
	if err != nil {
		return storeError(ctx, "", err)
	}
	return l.pingOthers(ctx)
}

// pingOthers checks the permissions that rules need which only other limiters have used.
func (l *Limiter) pingOthers(ctx context.Context) error {
	rules, err := l.Rules(ctx)
	if err != nil {
		return err
	}
	var others []*engine.Rule
	for _, rule := range rules {
		if p, err := rule.prepare(""); err == nil && !l.used.knows(p) {
			others = append(others, p.numbers)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return storeError(ctx, "", l.store.Ping(ctx, l.prefix, others))
}
