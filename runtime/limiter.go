package ratelimit

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// Limiter decides calls. It is safe for concurrent use. Make one with [New]: the zero Limiter cannot be used.
type Limiter decide.Limiter

// machine returns the machinery of the limiter.
func (l *Limiter) machine() *decide.Limiter { return (*decide.Limiter)(l) }

// New returns a limiter that counts in store. Make the store with memstore.New, redisstore.New or plain.New. New panics if store is nil. Any
// number of limiters may share a store. Limiters with the same prefix share their counts.
func New(store Store, options ...Option) *Limiter {
	if store == nil {
		panic("ratelimit.New: the store is nil")
	}
	o := newOptions()
	for _, option := range options {
		option(o)
	}
	return (*Limiter)(decide.New(store, o.Options))
}

// Store keeps the state of rules and decides calls. Make one with memstore.New, redisstore.New or plain.New. Only this module implements
// Store.
type Store = backend.Store

// Option changes a limiter that [New] makes.
type Option func(*options)

// options are what a limiter is made with.
type options struct {
	decide.Options
	trigger   func(context.Context, Trigger)
	observers []func(context.Context, *Event)
	mistakes  sync.Map // the mistakes of the program that were logged, by rule and kind
}

// newOptions returns the options of a limiter that was given none. They have what only this package can make.
func newOptions() *options {
	o := &options{Options: decide.Options{Prefix: DefaultPrefix, Logger: slog.Default()}}
	o.Public = decide.Public{
		KeyError: keyError, WrongLimit: o.wrongLimit, WrongAnchor: o.wrongAnchor, TooCostly: tooCostly, StoreError: storeError,
		MethodError: methodError, RuleError: ruleError, IsAnswer: isAnswer, Refusal: func(c *decide.Call) error { return refusalOf(c) },
		Failed: o.failed, Describe: describe, Discreet: discreet, Tell: o.tell, TellChange: o.tellChange,
	}
	return o
}

// DefaultPrefix is the prefix of all keys in the store, unless [WithPrefix] sets another.
const DefaultPrefix = "ratelimit"

// WithPrefix sets the prefix of all keys in the store, instead of [DefaultPrefix]. Applications that share a Redis need different prefixes.
// Braces, percent signs and unprintable characters are escaped. The end of a prefix of more than 128 bytes is replaced by a hash. With the
// prefix "shop", the permits that ann has of a rule "codes" in an hour are under the key shop:codes:{ann}:1h.
func WithPrefix(prefix string) Option {
	prefix = strings.Clone(key.Escape(prefix))
	return func(o *options) { o.Prefix = prefix }
}

// WithFailurePolicy sets what happens to calls while the store fails, for rules without a policy of their own. The default is FailClosed.
// If the rules of one call differ, the strictest policy holds: FailClosed, then FailLocal, then FailOpen. With FailLocal and a Limit of 10 in
// three processes, up to 30 permits pass while the store fails.
func WithFailurePolicy(policy FailurePolicy) Option {
	return func(o *options) { o.Policy = decide.Policy(policy) }
}

// WithLogger sets where the limiter logs, instead of slog.Default(). It logs one line when the store is lost, when the store is back (no
// call has failed for five seconds) with how long it failed and what became of the calls meanwhile, when it cannot read an override,
// when a server lacks functions or a permission, and once if the program makes more than 100 limiters of a prefix within a minute. WithLogger panics if the logger is nil.
func WithLogger(logger *slog.Logger) Option {
	if logger == nil {
		panic("ratelimit.WithLogger: the logger is nil")
	}
	return func(o *options) { o.Logger = logger }
}

// Trigger describes a rule in trigger mode that has reached its limit. For example, a rule has a Limit of 100, and 98 permits are used. A call
// that takes 3 is a Trigger with Limit 100 and Used 101, and later calls of the window are none.
type Trigger struct {
	Method string // pkg.Type.Method; "" for requests
	Rule   string // the rule's name
	Key    string // as in Violation
	Limit  int64  // permits per window
	Used   int64  // permits used in the window by now; one call counts for at most 2*10^15
}

// WithTrigger sets a function that is called each time a call raises the used permits of a rule in trigger mode from below its limit to the
// limit or above. The call goes on when the function returns. Many goroutines may call the function at the same time. Peek does not call
// it. Without this option, rules in trigger mode only count. WithTrigger panics if the function is nil.
func WithTrigger(trigger func(context.Context, Trigger)) Option {
	if trigger == nil {
		panic("ratelimit.WithTrigger: the function is nil")
	}
	return func(o *options) { o.trigger, o.Public.Fire = trigger, o.fire }
}

// Status is what a limiter knows of its store, its rules and the settings in force. It is for metrics. For example, two overrides and a
// block are in force, and one of the overrides has a Per, which its rule with Cron cannot have. Then Settings is 3, and Unusable is 1.
type Status struct {
	StoreUp  bool         // no decision failed within five seconds, and neither did the last reading of the settings
	Settings int          // overrides, blocks and pauses in force
	Unusable int          // overrides, blocks and pauses that cannot be read, or that a rule cannot have: see [Overrides.Err]
	Lost     int          // overrides, blocks and pauses in force that the store has lost
	Read     time.Time    // when the settings were last read, by this process's clock; zero for a store in this process, and before the first time
	Rules    []RuleStatus // the rules of wrappers, of Check and of calls, by name
}

// RuleStatus is a rule that a limiter knows. For example, "search" declares a Limit of 100, and an override has a Factor of 2. Then Limit
// is 200. If kim paused one key, and the far side asked this process for quiet about two others, Paused is 1, and FarPaused is 2.
type RuleStatus struct {
	Name     string // as in events
	Limit    int64  // permits per window for keys without settings of their own. Of rules with one name and several windows, the least
	Computed bool   // each call brings its limit, so Limit is 0 and says nothing

	Paused    int // keys that an actor of any process, or this process by Limiter.Pause, has paused
	FarPaused int // keys of a Pausable rule that this process has paused because the far side asked for it
}

// Status returns what the limiter knows now. It asks no store.
func (l *Limiter) Status() Status {
	m := l.machine()
	of := m.Fleet().Status()
	s := Status{StoreUp: of.Err == nil && !m.FailedLately(), Lost: of.Lost, Read: m.Fleet().Read(), Rules: l.ruleStatus()}
	for range m.Settings() {
		s.Settings++
	}
	s.Unusable = len(l.unusable())
	return s
}

func (l *Limiter) ruleStatus() []RuleStatus {
	m := l.machine()
	paused, far := m.Fleet().PausesHere(false), m.Fleet().PausesHere(true)
	for s := range m.Settings() {
		if s.Kind == fleet.Pause {
			paused[s.Rule]++
		}
	}
	var all []RuleStatus
	for _, rule := range m.Used() {
		now, name := m.InForce(rule, "", ""), fleet.SettingName(rule.Numbers.Name) // "" is no key
		n := 0
		for of := range paused {
			if fleet.Covers(of, name) {
				n += paused[of]
			}
		}
		all = append(all, RuleStatus{rule.Label, now.Limit, now.Computed, n, far[rule.Numbers.Name]})
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

// Ping returns nil if the limiter is ready to decide: its store answers and grants all permissions that decisions need, and the overrides
// and blocks in it have been read. Use Ping when a program starts, not in its /readyz: while the store fails, failure policies decide, and
// a readiness check that fails in all programs leaves a balancer with none. Decisions do not need Ping. Some seconds after a wrapper is
// made or a rule is first used, the limiter itself checks the permissions that the rule needs, and logs one line if some are missing.
//
// The permissions that decisions need depend on their rules. Ping checks those of the rules that limiters of the prefix used within the last
// day, and of the rules that were given to [Limiter.Check].
//
// The error is a *StoreError, or wraps the context's. A *StoreError says what to do about an unknown user, a wrong password, a missing
// permission, a server that is too old, or a read-only replica.
func (l *Limiter) Ping(ctx context.Context) error {
	m := l.machine()
	m.Notify()
	err := m.Store().Ping(ctx, m.Prefix(), nil) // its error says most about a store that does not answer
	if err == nil {
		err = m.Fleet().Follow(ctx)
	}
	if err != nil {
		return m.StoreError(ctx, "", err)
	}
	used, err := l.Rules(ctx)
	if err != nil && !strings.Contains(err.Error(), "unknown command 'HSCAN'") { // Ping goes by the rules of this limiter then
		return err
	}
	rules := m.UsedNumbers()
	for _, rule := range used {
		if p, err := rule.prepare(""); err == nil {
			for _, count := range p.Counts() {
				rules = append(rules, &count.Numbers)
			}
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return m.StoreError(ctx, "", m.Store().Ping(ctx, m.Prefix(), rules))
}
