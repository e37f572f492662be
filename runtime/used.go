package ratelimit

import (
	"context"
	"encoding/json"
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
)

// UsedRule is a rule that some limiter uses. For example, two processes declare a limit of 100, and a third, newer one declares 200. Then Limits
// is {100: 2, 200: 1}.
type UsedRule struct {
	Rule
	Seen   time.Time     // when a process last said that it uses the rule, by the store's clock
	Limits map[int64]int // how many processes declare each limit now; Computed limits are left out, and during a rollout there may be several
}

const (
	maxUsed    = fleet.MaxRules  // rules of one limiter
	usedDelay  = 5 * time.Second // how long to collect rules before their permissions are checked together
	usedSlots  = 8               // how many limiters can use a rule without noting it again and again
	usedChecks = 5 * time.Second // how long checking may take
)

// usedRules are the rules that a limiter uses. It tells them to its fleet.
type usedRules struct {
	number uint64      // of the limiter
	warned atomic.Bool // that the store is not ready for these rules was logged
	mu     sync.Mutex
	byID   map[ruleID]*preparedRule
	due    bool // the permissions will be checked
}

// ruleID identifies the counts of a rule.
type ruleID struct {
	name, tag string
	scope     Scope
}

func (p *preparedRule) id() ruleID { return ruleID{p.Name, p.numbers.Tag, p.Scope} }

var limiterNumbers atomic.Uint64

func (u *usedRules) start() { u.number, u.byID = limiterNumbers.Add(1), map[ruleID]*preparedRule{} }

// uses reports whether a call has noted a rule as used. If two limiters share a slot, one of them may have to note the rule again.
func (l *Limiter) uses(rule *preparedRule) bool {
	return rule.usedBy[l.rules.number%usedSlots].Load() == l.rules.number
}

// use notes that a rule is used by a call, unless that is a Peek. It returns an error if the store cannot decide the rule.
func (l *Limiter) use(rule *preparedRule, peek bool) error {
	l.store.Notify(l.notify)
	err := l.supports(rule, 0)
	if err == nil && !peek {
		rule.usedBy[l.rules.number%usedSlots].Store(l.rules.number)
		l.note(rule)
	}
	return err
}

// note notes that a rule is used, or will be. Only now it is known whether the keys of the rule are hashed.
func (l *Limiter) note(rule *preparedRule) {
	l.register(rule)
	if rule.Hash == HashNever && l.hasher != nil && l.own.merged.Load() != nil {
		l.own.edit(l, func(map[ownKey]*fleet.Setting) {})
	}
}

func (l *Limiter) register(rule *preparedRule) {
	l.store.Notify(l.notify)
	u := &l.rules
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, found := u.byID[rule.id()]; found || len(u.byID) >= maxUsed {
		return
	}
	u.byID[rule.id()] = rule
	if rule.Scope == ScopeInstance {
		l.fleet.Watch()
		return
	}
	l.fleet.Register(rule.declared())
	u.checkLater(func() {
		u.setDue(false)
		if l.store.Lately("check "+l.prefix+" "+u.names()) <= 1 { // otherwise another limiter checks them
			_ = l.guard(l.checkUsed)
		}
	})
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
		l.logger.Warn("the rate limit store is not ready for all rules in use", "err", oneLine(err.Error()))
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
		time.AfterFunc(usedDelay, check)
	}
}

// all returns the rules that the limiter uses.
func (u *usedRules) all() []*preparedRule {
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
		if rule.Scope != ScopeInstance {
			all = append(all, rule.numbers)
		}
	}
	return all
}

// named returns a rule of a name that the limiter uses, or one with that name alone.
func (u *usedRules) named(name string) *Rule {
	for _, rule := range u.all() {
		if rule.Name == name {
			return &rule.Rule
		}
	}
	return &Rule{Name: name}
}

// Rules returns the rules that limiters of this prefix on the store use, or used within the last day, sorted by name. There are at most 1,000,
// and none of instance scope. A rule appears some seconds after a wrapper that has it is made, or after its first use or Check. A tool that does
// not know the program can pass the rules to [Limiter.Peek], [Limiter.Reset] and [Limiter.Block]. The error is a *StoreError, or wraps the
// context's.
func (l *Limiter) Rules(ctx context.Context) ([]UsedRule, error) {
	declared, err := l.fleet.Rules(ctx)
	if err != nil {
		return nil, storeError(ctx, "", err)
	}
	all := map[string]*UsedRule{}
	for _, d := range slices.SortedStableFunc(slices.Values(declared), func(a, b fleet.Declared) int { return a.Seen.Compare(b.Seen) }) {
		rule, err := parseUsed(d.Text)
		if err != nil {
			continue
		}
		id := rule.Name + " " + rule.Window() + " " + rule.Key
		rule.Seen, rule.Limits = d.Seen, map[int64]int{}
		if older := all[id]; older != nil {
			rule.Limits = older.Limits
		}
		if d.Processes > 0 && !rule.Computed {
			rule.Limits[rule.Limit] += d.Processes
		}
		all[id] = rule // with the limit that was seen last
	}
	var rules []UsedRule
	for _, id := range slices.Sorted(maps.Keys(all)) {
		rules = append(rules, *all[id])
	}
	return rules[:min(len(rules), maxUsed)], nil
}

// usedText is a rule in the store, as JSON.
type usedText struct {
	Rule
	Unnamed bool `json:"unnamed,omitzero"`
}

// forTools returns the rule without the fields that matter only to the program itself.
func (r Rule) forTools() Rule {
	r.Scope, r.Refund, r.OnError, r.Message = ScopeFleet, RefundNever, DefaultPolicy, ""
	return r
}

// declared returns what the fleet is told of a rule.
func (p *preparedRule) declared() fleet.Rule {
	used := usedText{p.forTools(), p.unnamed}
	used.Name = p.label
	text, _ := json.Marshal(used) // texts and numbers: it never fails
	return fleet.Rule{Name: p.Name, Tag: p.numbers.Tag, Unnamed: p.unnamed, Text: string(text)}
}

// parseUsed parses a rule from the store.
func parseUsed(text string) (*UsedRule, error) {
	var t usedText
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, err
	}
	rule := &UsedRule{Rule: t.forTools()}
	rule.unnamed = t.Unnamed
	return rule, rule.check()
}
