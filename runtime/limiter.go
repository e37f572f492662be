package runtime

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unique"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// Limiter decides calls. It is safe for concurrent use; make it with [New].
type Limiter struct {
	store  decide.Store
	prefix unique.Handle[string]
	rules  sync.Map // Rule to *prepared: the rules of requests
}

// New returns a limiter that counts in store.
func New(store Store, options ...Option) *Limiter {
	l := &Limiter{store: store, prefix: unique.Make("ratelimit")}
	for _, option := range options {
		option(l)
	}
	return l
}

// Take charges one permit to each rule, for the subjects in the order of the rules. It returns nil if the call is admitted,
// else one of the errors of this package, or ctx's wrapped. Generated code calls it.
func (l *Limiter) Take(ctx context.Context, rules *Rules, subjects ...string) error {
	c := newCall(l.prefix)
	defer c.free()
	for i, subject := range subjects {
		if err := c.add(rules.method, rules.rules[i], subject, 1); err != nil {
			return err
		}
	}
	return l.take(ctx, rules.method, c)
}

// Charge is what one rule takes of a call.
type Charge struct {
	Key  string // the subject; "" for a rule without a key
	Cost int64  // permits; with 0 the rule does not apply, below 0 it is a *KeyError
}

// Charge is Take with a cost for each rule.
func (l *Limiter) Charge(ctx context.Context, rules *Rules, charges ...Charge) error {
	c := newCall(l.prefix)
	defer c.free()
	for i, charge := range charges {
		if err := c.add(rules.method, rules.rules[i], charge.Key, charge.Cost); err != nil {
			return err
		}
	}
	return l.take(ctx, rules.method, c)
}

func (l *Limiter) take(ctx context.Context, method string, c *call) error {
	v, err := l.decide(ctx, method, c)
	if err != nil {
		return err
	}
	if v.Admitted {
		return nil
	}
	return c.refusal(method, v)
}

// decide asks the store. Nothing to ask about is admitted.
func (l *Limiter) decide(ctx context.Context, method string, c *call) (decide.Verdict, error) {
	if ctx.Err() != nil {
		return decide.Verdict{}, storeError(ctx, method, ctx.Err())
	}
	if len(c.Claims) == 0 {
		return decide.Verdict{Admitted: true}, nil
	}
	v, err := l.store.Decide(ctx, &c.Call)
	if err != nil {
		return v, storeError(ctx, method, err)
	}
	return v, nil
}

// storeError tells a store that failed from a context that ended meanwhile.
func storeError(ctx context.Context, method string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", where(method, "rate limit"), ctx.Err())
	default:
		return &StoreError{Method: method, Err: err}
	}
}

// Allow decides a call under the rules of the requests: all of them are charged, or none. A refusal is a Decision, not an
// error; the error is a *StoreError, *KeyError, *NeverAdmissibleError or *RuleError, or ctx's.
func (l *Limiter) Allow(ctx context.Context, requests ...Request) (Decision, error) {
	return l.request(ctx, requests, false)
}

// Peek returns what Allow would, and charges nothing.
func (l *Limiter) Peek(ctx context.Context, requests ...Request) (Decision, error) {
	return l.request(ctx, requests, true)
}

func (l *Limiter) request(ctx context.Context, requests []Request, peek bool) (Decision, error) {
	c := newCall(l.prefix)
	defer c.free()
	if err := l.addAll(c, requests); err != nil {
		return Decision{}, err
	}
	c.Peek = peek
	v, err := l.decide(ctx, "", c)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Allowed: v.Admitted, At: time.UnixMicro(v.At)}
	if !v.Admitted {
		d.At = time.UnixMicro(v.Now)
		d.RetryAfter, d.Violations = c.violations(v)
	} else if !peek {
		d.charge = newCharge(l.store, &c.Call)
	}
	return d, nil
}

// Reset forgets what the subjects of the requests have used under their rules. Costs do not matter.
func (l *Limiter) Reset(ctx context.Context, requests ...Request) error {
	c := newCall(l.prefix)
	defer c.free()
	for i := range requests {
		rule, err := l.prepared(requests[i].Rule)
		if err != nil {
			return err
		}
		c.claim(rule, subject(requests[i].Key), 1)
	}
	if ctx.Err() != nil {
		return storeError(ctx, "", ctx.Err())
	}
	return storeError(ctx, "", l.store.Reset(ctx, &c.Call))
}
