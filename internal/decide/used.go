package decide

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

const (
	maxUsed    = fleet.MaxRules  // rules of one limiter
	UsedDelay  = 5 * time.Second // how long to collect rules before their permissions are checked together
	usedChecks = 5 * time.Second // how long checking may take
)

// usedRules are the rules that a limiter uses. It tells them to its fleet.
type usedRules struct {
	warned atomic.Bool // that the store is not ready for these rules was logged
	mu     sync.Mutex
	byID   map[ruleID]*Rule
	due    bool // the permissions will be checked
}

func (u *usedRules) start() { u.byID = map[ruleID]*Rule{} }

// note notes that the rules of a method are used, or will be, once for a method. Only now it is known whether their keys are hashed.
func (m *Method) note() {
	if m.noted.Swap(true) {
		return
	}
	for _, rule := range m.rules.All {
		m.limiter.Note(rule)
	}
}

// Note notes that a rule is used, or will be.
func (l *Limiter) Note(rule *Rule) {
	l.register(rule)
	if rule.PlainKeys && l.hasher != nil && l.own.merged.Load() != nil {
		l.own.edit(l, func(map[ownKey]*fleet.Setting) {})
	}
}

func (l *Limiter) register(rule *Rule) {
	l.Notify()
	u := &l.rules
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, found := u.byID[rule.id()]; found || len(u.byID) >= maxUsed {
		return
	}
	u.byID[rule.id()] = rule
	if rule.Instance {
		l.fleet.Watch()
		return
	}
	l.fleet.Register(rule.forFleet())
	u.checkLater(func() {
		u.setDue(false)
		if l.store.Lately("check "+l.prefix+" "+u.names()) <= 1 { // otherwise another limiter checks them
			_ = l.guard(l.checkUsed)
		}
	})
}

// forFleet returns what the fleet is told of a rule.
func (r *Rule) forFleet() fleet.Rule {
	return fleet.Rule{Name: r.Numbers.Name, Tag: r.Numbers.Tag, Unnamed: r.Unnamed, Text: r.Declared.Text(r.Label)}
}

// checkUsed logs once if the store lacks something that the rules need. Decisions do not depend on it. While the server is away, checkUsed comes
// again later and logs nothing, because failed decisions tell of that. It ignores that the program has closed the client meanwhile.
func (l *Limiter) checkUsed() {
	ctx, cancel := context.WithTimeout(context.Background(), usedChecks)
	defer cancel()
	u := &l.rules
	u.setDue(false)
	err := l.store.Ping(ctx, l.prefix, u.numbers())
	switch _, away := errors.AsType[*backend.AwayError](err); {
	case err == nil || errors.Is(err, backend.ErrClosed):
	case away:
		u.mu.Lock()
		defer u.mu.Unlock()
		used := weak.Make(l) // the program may drop the limiter meanwhile
		u.checkLater(func() {
			if l := used.Value(); l != nil {
				_ = l.guard(l.checkUsed)
			}
		})
	case !u.warned.Swap(true):
		l.logger.Warn("the rate limit store is not ready for all rules in use", "err", printable.Line(err.Error()))
	}
}

// setDue notes whether a check will come.
func (u *usedRules) setDue(due bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.due = due
}

// checkLater has the permissions checked after a while. The rules must be locked.
func (u *usedRules) checkLater(check func()) {
	if !u.due {
		u.due = true
		time.AfterFunc(UsedDelay, check)
	}
}

// all returns the rules that the limiter uses.
func (u *usedRules) all() []*Rule {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Values(u.byID))
}

// names identifies the rules.
func (u *usedRules) names() string {
	var all []string
	for _, rule := range u.numbers() {
		all = append(all, rule.Name+" "+rule.Tag)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// numbers returns the rules that the store decides.
func (u *usedRules) numbers() (all []*engine.Rule) {
	for _, rule := range u.all() {
		for _, count := range rule.Counts() {
			if !rule.Instance {
				all = append(all, &count.Numbers)
			}
		}
	}
	return all
}

// UsesPlainKeys reports whether the limiter uses a rule of a name whose subjects are not hashed.
func (l *Limiter) UsesPlainKeys(name string) bool {
	for _, rule := range l.rules.all() {
		if rule.Numbers.Name == name {
			return rule.PlainKeys
		}
	}
	return false
}

// UsesHashedKeys reports whether the limiter uses a rule of a name, and not one whose subjects are not hashed.
func (l *Limiter) UsesHashedKeys(name string) bool {
	return slices.ContainsFunc(l.rules.all(), func(rule *Rule) bool { return rule.Numbers.Name == name }) && !l.UsesPlainKeys(name)
}

// Used returns the rules that the limiter uses.
func (l *Limiter) Used() []*Rule { return l.rules.all() }

// UsedNumbers returns those of them that the store decides.
func (l *Limiter) UsedNumbers() []*engine.Rule { return l.rules.numbers() }
