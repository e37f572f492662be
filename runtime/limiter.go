package ratelimit

import (
	"context"
	"time"
	"unique"

	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
	"github.com/ratelimit-go/ratelimit/runtime/internal/memory"
)

// Limiter decides calls. It is safe for concurrent use; make it with [New].
type Limiter struct {
	store   decide.Store
	local   decide.Store // of this instance
	prefix  unique.Handle[string]
	policy  FailurePolicy
	shadow  func(context.Context, *TooManyRequestsError)
	trigger func(context.Context, Trigger)

	requested ruleSet
	limited   decide.Limited // the store, if it cannot decide every rule
	overrides overrides
}

// maxLocalKeys bounds what a limiter counts by itself.
const maxLocalKeys = 1_000_000

// New returns a limiter that counts in store.
func New(store Store, options ...Option) *Limiter {
	l := &Limiter{store: store, prefix: unique.Make(DefaultPrefix), local: memory.NewLike(store, maxLocalKeys)}
	l.limited, _ = store.(decide.Limited)
	l.overrides.fleet.store, _ = store.(decide.Settings)
	for _, option := range options {
		option(l)
	}
	return l
}

// Allow decides a call under the rules of the requests: all of them are charged, or none. It does not wait. A refusal is a
// Decision, not an error; the error is a *StoreError, *KeyError, *NeverAdmissibleError or *RuleError, or ctx's.
func (l *Limiter) Allow(ctx context.Context, requests ...Request) (Decision, error) {
	return l.request(ctx, requests, 0, false)
}

// Peek returns what Allow would, and charges nothing. A request reaches the counts of a directive by its name and window; the name
// includes the prefix= of its type, as for Override.
func (l *Limiter) Peek(ctx context.Context, requests ...Request) (Decision, error) {
	return l.request(ctx, requests, 0, true)
}

// Wait is Allow for a caller that has time: it takes the earliest place that suits all rules, and sleeps until then. How long
// it may sleep is for ctx to say; without a deadline that is up to 3660 days, whatever Wait the rules have.
//
// A place behind the deadline is not taken: the call is refused at once, by a Decision that is not Allowed, with a nil error. If
// ctx ends while the call sleeps, its place is given back, and the error wraps ctx's. A call that a rule with Distinct counts
// does not wait: it is decided as Allow does.
//
// Who asks first is first, and keeps its place under all its rules: what is reserved counts as taken from then on, and others
// pass before it where there is room besides. In a LeakyBucket and in a bucket that warms up there is none, so that a place far
// ahead, because of another rule of its call, holds up everybody behind it.
func (l *Limiter) Wait(ctx context.Context, requests ...Request) (Decision, error) {
	return l.request(ctx, requests, longestWait, false)
}

// longestWait is the wait of a program that sets no deadline.
const longestWait = maxPer

func (l *Limiter) request(ctx context.Context, requests []Request, wait time.Duration, peek bool) (Decision, error) {
	c := l.newCall(ctx, "")
	defer c.free()
	c.patient, c.wait, c.fleet.Peek, c.local.Peek = true, wait, peek, peek
	for i := range requests {
		if err := c.addRequest(&requests[i]); err != nil {
			return Decision{}, err
		}
	}
	o, err := c.decide(ctx)
	if err != nil {
		return Decision{}, err
	}
	if err := c.sleep(ctx, o.wait); err != nil {
		return Decision{}, err
	}
	d := Decision{Allowed: o.admitted, At: time.UnixMicro(o.at)}
	if !peek {
		c.report(ctx, o.admitted)
	}
	if !o.admitted {
		d.RetryAfter, d.Violations = c.violations(ModeEnforce)
		return d, nil
	}
	_, d.Violations = c.violations(ModeShadow)
	if !peek {
		d.charged = c.keep(func(*prepared) bool { return true })
	}
	return d, nil
}

func (c *call) addRequest(r *Request) error {
	rule, err := c.limiter.requested.prepare(&r.Rule)
	if err != nil {
		return err
	}
	charge := bridge.Charge{Key: r.Key, Cost: r.Cost, Member: r.Member}
	if charge.Cost == 0 {
		charge.Cost = 1
	}
	return c.add(rule, &charge)
}

// Reset forgets what the subjects of the requests have used under their rules, which are named as for Peek. Costs do not
// matter.
func (l *Limiter) Reset(ctx context.Context, requests ...Request) error {
	c := l.newCall(ctx, "")
	defer c.free()
	for i := range requests {
		rule, err := l.requested.prepare(&requests[i].Rule)
		if err != nil {
			return err
		}
		rule, _ = l.overridden(rule)
		if err := l.supports(rule, 0); err != nil {
			return err
		}
		if requests[i].Key == "" && rule.Key != "" {
			return c.keyError(rule, rule.Key, "the key is empty")
		}
		c.claim(rule, &bridge.Charge{Key: requests[i].Key, Cost: 1}, rule.Limit)
	}
	if ctx.Err() != nil {
		return storeError(ctx, "", ctx.Err())
	}
	for _, p := range []*part{&c.fleet, &c.local} {
		if len(p.Claims) == 0 {
			continue
		}
		if err := p.store.Reset(ctx, &p.Call); err != nil {
			return storeError(ctx, "", err)
		}
	}
	return nil
}
