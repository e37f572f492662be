package ratelimit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// UsedRule is a rule that some limiter has used in a decision.
type UsedRule struct {
	Rule
	Varies bool      // the limit depends on the call; Limit is that of the first call
	Seen   time.Time // when a limiter last used it, to within about six hours
}

const (
	maxUsed      = maxSettings // rules in the store, and of one limiter
	usedLife     = 24 * time.Hour
	usedAgain    = 6 * time.Hour    // how often a limiter writes its rules to the store again
	usedRetry    = 10 * time.Minute // how soon it does so after a failure, which may be a missing permission
	usedTimeout  = 5 * time.Second
	usedDelay    = 5 * time.Second // how long to collect rules before they are written together
	usedTurnBits = 32
	usedSlots    = 8 // how many limiters can use a rule without noting it again and again
)

// used writes the rules that a limiter uses to the store, so that tools can list them. No call waits for that.
type used struct {
	turn   atomic.Uint64 // the limiter's number, and in the last usedTurnBits bits how often it began to write its rules again
	warned atomic.Bool   // that the store is not ready for these rules was logged
	mu     sync.Mutex
	due    time.Time               // when to begin the next turn
	known  map[ruleID]*engine.Rule // rules that were used in this turn
	meant  map[ruleID]*engine.Rule // rules that were given to Check
	untold map[string]string       // rules to write: text by field
}

// ruleID identifies the counts of a rule.
type ruleID struct{ name, tag string }

var limiterNumbers atomic.Uint64

func (u *used) start(l *Limiter) {
	u.turn.Store(limiterNumbers.Add(1) << usedTurnBits)
	u.due, u.known, u.meant, u.untold = time.Now().Add(usedAgain), map[ruleID]*engine.Rule{}, map[ruleID]*engine.Rule{}, map[string]string{}
}

// use notes that a rule is used by a call.
func (l *Limiter) use(rule *prepared, charge *bridge.Charge) {
	if !rule.isUsedIn(l.used.turn.Load()) {
		l.used.note(l, rule, charge)
	}
}

// isUsedIn reports whether a limiter noted the rule in this turn. If two limiters share a slot, one of them may have to note the rule again.
func (p *prepared) isUsedIn(turn uint64) bool { return p.usedSlot(turn).Load() == turn }

func (p *prepared) usedSlot(turn uint64) *atomic.Uint64 {
	return &p.usedIn[turn>>usedTurnBits%usedSlots]
}

func (u *used) note(l *Limiter, rule *prepared, charge *bridge.Charge) {
	u.mu.Lock()
	defer u.mu.Unlock()
	turn := u.turn.Load()
	rule.usedSlot(turn).Store(turn)
	id := ruleID{rule.Name, rule.tag}
	if rule.Scope == ScopeInstance || u.known[id] != nil || len(u.known) >= maxUsed {
		return
	}
	u.known[id] = rule.numbers
	limit := rule.Limit
	if charge.Limit.Given {
		limit = charge.Limit.Permits
	}
	text, err := json.Marshal(rule.used(limit, charge.Limit.Given))
	if err != nil || len(text) > maxSettingBytes {
		return
	}
	if len(u.untold) == 0 {
		time.AfterFunc(usedDelay, func() {
			if l.guard(func() { u.tell(l) }) != nil {
				u.retry()
			}
		})
	}
	u.untold[rule.Name+" "+rule.tag] = string(text)
}

// expect notes that a rule will be used.
func (u *used) expect(rule *prepared) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if rule.Scope == ScopeFleet && len(u.meant) < maxUsed {
		u.meant[ruleID{rule.Name, rule.tag}] = rule.numbers
	}
}

// own returns the rules that the limiter uses or will use.
func (u *used) own() []*engine.Rule {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Values(u.known)), maps.Values(u.meant))
}

// knows reports whether the limiter uses or will use a rule.
func (u *used) knows(rule *prepared) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	id := ruleID{rule.Name, rule.tag}
	return u.known[id] != nil || u.meant[id] != nil
}

// again makes the limiter write its rules again if that is due.
func (u *used) again() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := time.Now(); now.After(u.due) {
		u.due = now.Add(usedAgain)
		clear(u.known)
		u.turn.Add(1)
	}
}

// tell writes new rules to the store. If the store lacks something that the rules need, it logs that once. Decisions do not depend on tell.
// It ignores that the program has closed the client meanwhile.
func (u *used) tell(l *Limiter) {
	ctx, cancel := context.WithTimeout(context.Background(), usedTimeout)
	defer cancel()
	u.mu.Lock()
	texts := u.untold
	u.untold = map[string]string{}
	u.mu.Unlock()
	if l.store.Register(ctx, l.list(listRules), texts, usedLife) == nil {
		_ = l.pruneUsed(ctx)
	} else {
		u.retry()
	}
	store, ok := l.store.(engine.Pinger)
	if !ok {
		return
	}
	if err := store.Ping(ctx, l.prefix, u.own()); err != nil && !errors.Is(err, engine.ErrClosed) && !u.warned.Swap(true) {
		l.logger.Warn("the rate limit store is not ready for all rules in use", "err", oneLine(err.Error()))
	}
}

// retry makes the limiter write its rules again soon.
func (u *used) retry() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.due = time.Now().Add(usedRetry)
}

// pruneUsed removes rules that nobody has used for a day. If there are too many, it also removes the oldest.
func (l *Limiter) pruneUsed(ctx context.Context) error {
	texts, err := l.store.Settings(ctx, l.list(listRules))
	if err != nil {
		return err
	}
	fields, seen := make([]string, 0, len(texts)), make(map[string]time.Time, len(texts))
	for field, text := range texts {
		rule, _ := parseUsed(text) // a malformed text counts as the oldest
		fields, seen[field] = append(fields, field), rule.Seen
	}
	slices.SortFunc(fields, func(a, b string) int { return cmp.Or(seen[b].Compare(seen[a]), strings.Compare(a, b)) })
	kept := min(len(fields), maxUsed)
	for kept > 0 && time.Since(seen[fields[kept-1]]) >= usedLife {
		kept--
	}
	return l.store.Unset(ctx, l.list(listRules), fields[kept:]...)
}

// Rules returns the rules that limiters of this prefix on the store have used within the last day, sorted by name. There are at most 1,000,
// and none of instance scope. A rule appears some seconds after its first use. A tool that does not know the program can pass the rules to
// [Limiter.Peek], [Limiter.Reset] and [Limiter.Block]. The error is a *StoreError, or wraps the context's.
func (l *Limiter) Rules(ctx context.Context) ([]UsedRule, error) {
	texts, err := l.store.Settings(ctx, l.list(listRules))
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, storeError(ctx, "", err)
	}
	var rules []UsedRule
	for _, text := range texts {
		if rule, err := parseUsed(text); err == nil && time.Since(rule.Seen) < usedLife {
			rules = append(rules, rule)
		}
	}
	slices.SortFunc(rules, func(a, b UsedRule) int {
		return strings.Compare(a.Name+" "+a.Window()+" "+a.Key, b.Name+" "+b.Window()+" "+b.Key)
	})
	return rules, nil
}

// usedText is a rule in the store.
type usedText struct {
	ruleText
	Unnamed bool      `json:"unnamed,omitzero"`
	Varies  bool      `json:"varies,omitzero"`
	Seen    time.Time `json:"seen"`
}

// ruleText is a Rule as JSON, without the fields that matter only to the program itself. Durations are in nanoseconds.
type ruleText struct {
	Name      string        `json:"name"`
	Key       string        `json:"key,omitzero"`
	Algorithm Algorithm     `json:"algorithm,omitzero"`
	Limit     int64         `json:"limit"`
	Amounts   bool          `json:"amounts,omitzero"`
	Per       time.Duration `json:"per,omitzero"`
	Cron      string        `json:"cron,omitzero"`
	TZ        string        `json:"tz,omitzero"`
	Burst     int64         `json:"burst,omitzero"`
	Prepay    bool          `json:"prepay,omitzero"`
	Warmup    time.Duration `json:"warmup,omitzero"`
	Slices    int64         `json:"slices,omitzero"`
	Distinct  string        `json:"distinct,omitzero"`
	Wait      time.Duration `json:"wait,omitzero"`
	Queue     int64         `json:"queue,omitzero"`
	Block     time.Duration `json:"block,omitzero"`
	Mode      Mode          `json:"mode,omitzero"`
	Scope     Scope         `json:"-"`
	Refund    Refund        `json:"-"`
	OnError   FailurePolicy `json:"-"`
	Lease     time.Duration `json:"lease,omitzero"`
	Hash      Hash          `json:"hash,omitzero"`
	Message   string        `json:"-"`

	raised  bool
	unnamed bool
}

// used returns what the store keeps of a rule. limit is that of the call, and varies says that it depends on the call.
func (p *prepared) used(limit int64, varies bool) usedText {
	rule := ruleText(p.Rule)
	rule.Name, rule.Limit = p.shown, limit
	return usedText{rule, p.unnamed, varies, time.Now().UTC().Truncate(time.Second)}
}

// parseUsed parses a rule from the store.
func parseUsed(text string) (UsedRule, error) {
	var t usedText
	if err := decode(text, &t); err != nil {
		return UsedRule{}, err
	}
	rule := UsedRule{Rule: Rule(t.ruleText), Varies: t.Varies, Seen: t.Seen}
	rule.unnamed = t.Unnamed
	return rule, rule.check()
}
