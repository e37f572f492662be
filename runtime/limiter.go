package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/memory"
	"github.com/ratelimit-go/ratelimit/internal/parts"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

// Limiter decides calls. It is safe for concurrent use. Make one with [New]: the zero Limiter cannot be used.
type Limiter struct {
	store     backend.Store
	decider   backend.Decider // decides the calls: see byScope
	fleet     *fleet.Fleet    // what the processes of the prefix know in common
	prefix    string
	hasher    *hasher // hashes subjects and members; nil if they are not hashed
	shownKeys bool    // see WithShownKeys
	policy    FailurePolicy
	trigger   func(context.Context, Trigger)
	observers []func(context.Context, *Event)
	logger    *slog.Logger
	notify    func(notice string, cause error) // logs what operators should know of the store, and keeps no limiter; see backend.Store
	outage    outage
	panicked  atomic.Bool // a panic in the background was logged
	missing   sync.Map    // the rules of wrappers for which it was logged that an identity is missing, by name

	releaseLines fleet.Lines // the calls that wait until others end, under rules of instance scope
	ruleCache    ruleCache
	own          ownSettings
	rules        usedRules
	placeLines   fleet.Lines // the calls that wait for their places, or for the end of a pause
}

// New returns a limiter that counts in store. Make the store with memstore.New, redisstore.New or plain.New. New panics if store is nil. Any
// number of limiters may share a store. Limiters with the same prefix share their counts.
func New(store Store, options ...Option) *Limiter {
	if store == nil {
		panic("ratelimit.New: the store is nil")
	}
	l := &Limiter{store: store, prefix: DefaultPrefix, logger: slog.Default()}
	for _, option := range options {
		option(l)
	}
	l.decider = l.byScope()
	l.notify = noticesTo(l.logger)
	l.ruleCache.rules = map[uint64]*preparedRule{}
	l.fleet = store.Fleet(l.prefix)
	l.fleet.LogTo(l.logger)
	l.rules.start()
	if store.Lately("limiter "+l.prefix) > manyLimiters && !warnedOfMany.Swap(true) {
		l.logger.Warn("the program makes limiters again and again, perhaps one for each request; each costs the servers many commands: make one "+
			"store and one limiter when the program starts, and keep them", "prefix", l.prefix, "limiters", manyLimiters, "within", time.Minute)
	}
	return l
}

// manyLimiters is how many limiters of one prefix on one client a program may make within a minute before that is logged.
const manyLimiters = 100

var warnedOfMany atomic.Bool // a process logs it once

// byScope returns who decides the calls of the limiter: this process the rules of instance scope, and the limiter's store the others. For example,
// a call has a rule of instance scope and one of fleet scope. This process charges the first rule. If the store then refuses the second one,
// the permits of the first go back. While the store fails, policyDecider decides the second one instead.
func (l *Limiter) byScope() backend.Decider {
	instance, fallback := l.inProcess(false), l.inProcess(true)
	byPolicy := &policyDecider{l, fallback, func(c *engine.Claim) (string, backend.Decider) {
		if c.By == engine.ByFallback {
			return "fallback", fallback()
		}
		return "store", l.store
	}}
	return parts.Split(func(c *engine.Claim) (string, backend.Decider) {
		if c.Rule.Instance {
			return "instance", instance() // first in order: a refusal of this process spares the store a charge that goes back
		}
		return "store", byPolicy
	})
}

// inProcess returns an empty store in this process, which is made when it is first used. whenFull says that it is asked when the limiter's
// store may be full.
func (l *Limiter) inProcess(whenFull bool) func() backend.Decider {
	return sync.OnceValue(func() backend.Decider {
		if own := l.store.Local(whenFull); own != nil {
			return own
		}
		return memory.New(nil, memory.MaxKeys, memory.MaxBytes)
	})
}

// noticesTo returns a function that logs what its operators should know of a store.
func noticesTo(logger *slog.Logger) func(notice string, cause error) {
	return func(text string, cause error) {
		if p, ok := errors.AsType[*backend.PanicError](cause); ok {
			logger.Error(text, "err", oneLine(cause.Error()), "stack", string(p.Stack))
			return
		}
		logger.Warn(text, "err", oneLine(cause.Error()))
	}
}

// guard calls do on a goroutine of the limiter. If do panics, for example in a hook of the store's client, guard logs the first panic, and
// returns an error.
func (l *Limiter) guard(do func()) error {
	err := backend.Guard(do)
	if err != nil && !l.panicked.Swap(true) {
		l.notify("the rate limit store panicked in the background", err)
	}
	return err
}

// processStart is when this process started, by the wall clock and by the monotonic clock.
var processStart = time.Now()

// elapsed is the time since a fixed instant, by the clock that calls wait by.
func (l *Limiter) elapsed() time.Duration { return l.store.Since(processStart) }

// Store keeps the state of rules and decides calls. Make one with memstore.New, redisstore.New or plain.New. Only this module implements
// Store.
type Store = backend.Store

func init() { bridge.View, bridge.Charges = view, chargesOf }

// chargesOf returns when the permits of a request's count were taken. Under Prepay and Warmup the state does not say for whom permits are.
func chargesOf(ctx context.Context, limiter, request any) ([]backend.Charge, error) {
	l, r := limiter.(*Limiter), request.(Request)
	rule, subject, err := l.ruleFor(&r)
	if err != nil || rule.Prepay || rule.Warmup > 0 {
		return nil, err
	}
	return l.store.Charges(ctx, key.State(l.prefix, rule.Name, subject, rule.numbers.Tag), rule.Per, rule.Burst, l.fleet.Now())
}

// view returns a limiter for a console: it decides by the same store, prefix and secret, takes keys also in the form in which they are
// shown, and declares no rules.
func view(limiter any) (any, string, *fleet.Fleet) {
	l := limiter.(*Limiter)
	v := &Limiter{
		store: l.store, decider: l.decider, fleet: l.fleet,
		prefix: l.prefix, hasher: l.hasher, shownKeys: true, policy: l.policy, logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		notify: l.notify,
	}
	v.ruleCache.rules = map[uint64]*preparedRule{}
	v.rules.start()
	return v, v.prefix, v.fleet
}

// Option changes a limiter that [New] makes.
type Option func(*Limiter)

// DefaultPrefix is the prefix of all keys in the store, unless [WithPrefix] sets another.
const DefaultPrefix = "ratelimit"

// WithPrefix sets the prefix of all keys in the store, instead of [DefaultPrefix]. Applications that share a Redis need different prefixes.
// Braces, percent signs and unprintable characters are escaped. The end of a prefix of more than 128 bytes is replaced by a hash. With the
// prefix "shop", the permits that ann has of a rule "codes" in an hour are under the key shop:codes:{ann}:1h.
func WithPrefix(prefix string) Option {
	prefix = strings.Clone(key.Escape(prefix))
	return func(l *Limiter) { l.prefix = prefix }
}

// WithFailurePolicy sets what happens to calls while the store fails, for rules without a policy of their own. The default is FailClosed.
// If the rules of one call differ, the strictest policy holds: FailClosed, then FailLocal, then FailOpen. With FailLocal and a Limit of 10 in
// three processes, up to 30 permits pass while the store fails.
func WithFailurePolicy(policy FailurePolicy) Option {
	return func(l *Limiter) { l.policy = policy }
}

// WithLogger sets where the limiter logs, instead of slog.Default(). It logs one line when the store is lost, when the store is back (no
// call has failed for five seconds) with how long it failed and what became of the calls meanwhile, when it cannot read an override,
// when a server lacks functions or a permission, and once if the program makes more than 100 limiters of a prefix within a minute. WithLogger panics if the logger is nil.
func WithLogger(logger *slog.Logger) Option {
	if logger == nil {
		panic("ratelimit.WithLogger: the logger is nil")
	}
	return func(l *Limiter) { l.logger = logger }
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
	return func(l *Limiter) { l.trigger = trigger }
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
// is 200.
type RuleStatus struct {
	Name     string // as in events
	Limit    int64  // permits per window for keys without settings of their own. Of rules with one name and several windows, the least
	Computed bool   // each call brings its limit, so Limit is 0 and says nothing
}

// Status returns what the limiter knows now. It asks no store.
func (l *Limiter) Status() Status {
	of := l.fleet.Status()
	s := Status{StoreUp: of.Err == nil && !l.failedLately(), Lost: of.Lost, Read: l.fleet.Read(), Rules: l.ruleStatus()}
	for setting := range l.own.over(l).All() {
		if l.unexpired(setting) != nil {
			s.Settings++
		}
	}
	s.Unusable = len(l.unusable())
	return s
}

func (l *Limiter) ruleStatus() []RuleStatus {
	var all []RuleStatus
	for _, rule := range l.rules.all() {
		now, _, _ := l.inForce(rule, "") // which is no subject
		all = append(all, RuleStatus{rule.label, now.Limit, now.Computed})
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
	l.store.Notify(l.notify)
	err := l.store.Ping(ctx, l.prefix, nil) // its error says most about a store that does not answer
	if err == nil {
		err = l.fleet.Follow(ctx)
	}
	if err != nil {
		return storeError(ctx, "", err)
	}
	used, err := l.Rules(ctx)
	if err != nil && !strings.Contains(err.Error(), "unknown command 'HSCAN'") { // Ping goes by the rules of this limiter then
		return err
	}
	rules := l.rules.numbers()
	for _, rule := range used {
		if p, err := rule.prepare(""); err == nil {
			rules = append(rules, p.numbers)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return storeError(ctx, "", l.store.Ping(ctx, l.prefix, rules))
}
