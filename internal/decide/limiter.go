package decide

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/memory"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Limiter decides calls. Package ratelimit has it as a type of its own.
type Limiter struct {
	store     backend.Store
	fleet     *fleet.Fleet // what the processes of the prefix know in common
	prefix    string
	hasher    *Hasher // nil if subjects are not hashed
	shownKeys bool
	policy    Policy
	logger    *slog.Logger
	public    Public

	instance func() backend.Decider           // counts the rules of instance scope
	fallback func() backend.Decider           // counts in place of a store that fails, under FailLocal
	notify   func(notice string, cause error) // logs what operators should know of the store, and keeps no limiter; see backend.Store
	outage   outage
	panicked atomic.Bool // a panic in the background was logged
	unusable sync.Map    // of errors, by *fleet.Setting: the overrides that a rule cannot have
	judged   atomic.Pointer[judged]

	methods methods
	types   sync.Map // of *Limits, by *Type
	own     ownSettings
	rules   usedRules
}

// Options are what a limiter is made with.
type Options struct {
	Prefix    string // of all keys in the store
	Hasher    *Hasher
	ShownKeys bool // keys of requests may have the form in which they are shown
	Policy    Policy
	Logger    *slog.Logger
	Public    Public
}

// Public is what only package ratelimit can make or do, because programs see the types.
type Public struct {
	KeyError    func(method string, rule *Rule, expr, reason string) error
	WrongLimit  func(method string, rule *Rule, reason string) error   // a *ratelimit.KeyError that is the program's mistake
	WrongAnchor func(method string, rule *Rule, reason string) error   // likewise
	TooCostly   func(c *Call, a *Asked, most int64, what string) error // a *ratelimit.NeverAdmissibleError
	StoreError  func(method string, err error) error                   // a *ratelimit.StoreError; a *ratelimit.RuleError stays one
	MethodError func(method, argument, reason string) error            // a *ratelimit.RuleError about no rule of the method
	RuleError   func(rule, argument, reason string) error
	IsAnswer    func(err error) bool // whether an error of a store is the answer of one that works
	Refusal     func(c *Call) error  // a *ratelimit.TooManyRequestsError
	Failed      func(ctx context.Context, l *Limiter, method string, err error) error
	Describe    func(err error, messages []string) error
	Discreet    func(l *Limiter, err error) error // without the text of a cause that may name a subject, if the limiter hashes subjects
	Tell        func(ctx context.Context, kind EventKind, method string, err error, changed []Changed)
	TellChange  func(ctx context.Context, what string, settings []*fleet.Setting)

	Fire    func(ctx context.Context, c *Call)                     // calls the program's trigger; nil if it has none
	Observe func(ctx context.Context, c *Call, took time.Duration) // tells observers of a decision; nil if there are none
}

// EventKind is what happened besides decisions.
type EventKind uint8

const (
	Refunded EventKind = iota
	Settled
	Released
	Given
	StoreLost
	StoreBack
)

// Changed is a charge that was changed: refunded, settled or released.
type Changed struct {
	Rule          *Rule
	Subject       string
	Limit         int64
	Before, After int64 // permits
}

// New returns a limiter that counts in store.
func New(store backend.Store, o Options) *Limiter {
	l := &Limiter{
		store: store, fleet: store.Fleet(o.Prefix), prefix: o.Prefix, hasher: o.Hasher, shownKeys: o.ShownKeys, policy: o.Policy, logger: o.Logger,
		public: o.Public, notify: noticesTo(o.Logger),
	}
	l.instance, l.fallback = l.inProcess(false), l.inProcess(true)
	l.fleet.LogTo(l.logger)
	fleet.Join(l.fleet, l, l.Fingerprint())
	l.rules.start()
	if store.Lately("limiter "+l.prefix) > manyLimiters && !WarnedOfMany.Swap(true) {
		l.logger.Warn("the program makes limiters again and again, perhaps one for each request; each costs the servers many commands: make one "+
			"store and one limiter when the program starts, and keep them", "prefix", l.prefix, "limiters", manyLimiters, "within", time.Minute)
	}
	return l
}

// manyLimiters is how many limiters of one prefix on one client a program may make within a minute before that is logged.
const manyLimiters = 100

// WarnedOfMany says that this process has logged that; only tests reset it.
var WarnedOfMany atomic.Bool

// View returns a limiter for those who look and change: it has the same store, prefix, secret and observers, takes keys also in the form in which they
// are shown, and declares no rules. A new field of Limiter that changes decisions belongs here, too.
func (l *Limiter) View() *Limiter {
	v := &Limiter{
		store: l.store, fleet: l.fleet, prefix: l.prefix, hasher: l.hasher, shownKeys: true, policy: l.policy,
		logger: slog.New(slog.NewTextHandler(io.Discard, nil)), public: l.public, instance: l.instance, fallback: l.fallback, notify: l.notify,
	}
	v.rules.start()
	return v
}

// Store returns the store of the limiter.
func (l *Limiter) Store() backend.Store { return l.store }

// Fleet returns what the processes of the limiter's prefix know in common.
func (l *Limiter) Fleet() *fleet.Fleet { return l.fleet }

// Prefix returns the prefix of all keys.
func (l *Limiter) Prefix() string { return l.prefix }

// Hashes reports whether the limiter hashes subjects.
func (l *Limiter) Hashes() bool { return l.hasher != nil }

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

// Supports returns an error if the store cannot decide a rule that may delay its calls by wait microseconds.
func (l *Limiter) Supports(rule *Rule, wait int64) error {
	if rule.Instance {
		return nil
	}
	if argument, reason := l.store.Unsupported(&rule.Numbers, wait); reason != "" {
		return rule.Declared.Wrong(argument, reason)
	}
	return nil
}

// noticesTo returns a function that logs what its operators should know of a store.
func noticesTo(logger *slog.Logger) func(notice string, cause error) {
	return func(text string, cause error) {
		if p, ok := errors.AsType[*backend.PanicError](cause); ok {
			logger.Error(text, "err", printable.Line(cause.Error()), "stack", string(p.Stack))
			return
		}
		logger.Warn(text, "err", printable.Line(cause.Error()))
	}
}

// Notify makes the store tell the limiter what its operators should know. The first limiter that uses a store gets that.
func (l *Limiter) Notify() { l.store.Notify(l.notify) }

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

// Tell tells the observers of something that is no decision.
func (l *Limiter) Tell(ctx context.Context, kind EventKind, method string, err error, changed ...Changed) {
	if l.public.Observe != nil {
		l.public.Tell(ctx, kind, method, err, changed)
	}
}

// TellChange tells the observers that this program changed settings.
func (l *Limiter) TellChange(ctx context.Context, what string, settings []*fleet.Setting) {
	if l.public.Observe != nil {
		l.public.TellChange(ctx, what, settings)
	}
}

// Failed tells the observers that the charges of a call could not be computed. It returns the error, without the text of its cause if the
// limiter hashes subjects.
func (l *Limiter) Failed(ctx context.Context, method string, err error) error {
	return l.public.Failed(ctx, l, method, err)
}

// Describe gives a refusal the message of the rule with the longest delay.
func (l *Limiter) Describe(err error, messages []string) error {
	return l.public.Describe(err, messages)
}
