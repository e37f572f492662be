package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

func init() {
	bridge.Prepare = func(method string, rules any) (bridge.Rules, error) { return prepareMethod(method, rules.([]Rule)) }
	bridge.Failed = func(ctx context.Context, limiter any, method string, err error) error {
		l := limiter.(*Limiter)
		err = l.discreet(err)
		l.warnMissing(ctx, err)
		l.tell(ctx, EventFailed, method, err, Outcome{Rule: ruleOf(err)})
		return err
	}
	bridge.Describe = describe
	bridge.Numbers = func(rule any) (*engine.Rule, error) {
		p, err := rule.(Rule).prepare("")
		if err != nil {
			return nil, err
		}
		return p.numbers, nil
	}
}

// warnMissing logs, once for a rule, that the context of a call carries no identity, and what to do.
func (l *Limiter) warnMissing(ctx context.Context, err error) {
	e, ok := errors.AsType[*KeyError](err)
	if !ok || !e.Missing {
		return
	}
	if _, again := l.missing.LoadOrStore(ruleOf(err), true); again {
		return
	}
	l.logger.WarnContext(ctx, "a rule refuses calls because "+e.Reason+"; for an address, wrap the handler by httplimit.ClientIP().Handler, or "+
		"use the interceptors of grpclimit; for a user, call ratelimit.WithUserID where you authenticate",
		"rule", ruleOf(err), "method", e.Method)
}

// methodRules are the prepared rules of a method.
type methodRules struct {
	method string
	rules  []*preparedRule
}

func prepareMethod(method string, rules []Rule) (*methodRules, error) {
	if len(rules) > maxRules {
		return nil, &RuleError{Rule: method, Argument: "rules", Reason: fmt.Sprintf("found %d; expected at most %d", len(rules), maxRules)}
	}
	r, unnamed := &methodRules{method: method}, 0
	for _, rule := range rules {
		label := rule.Name
		if rule.Name == "" || rule.Name == method {
			rule.Name, label = method, method
			if unnamed++; unnamed > 1 {
				label = fmt.Sprintf("%s#%d", method, unnamed)
			}
		}
		p, err := rule.prepare(method)
		if err = cmp.Or(err, rule.checkQueue()); err != nil {
			return nil, err
		}
		p.label, p.unnamed, p.method = label, key.IsUnnamed(rule.Name, method), r
		r.rules = append(r.rules, p)
	}
	return r, nil
}

// Rules implements bridge.Rules.
func (r *methodRules) Rules() any {
	rules := make([]Rule, len(r.rules))
	for i, p := range r.rules {
		rules[i] = p.Rule
		rules[i].Name = p.label
	}
	return rules
}

// WithCost implements bridge.Rules.
func (r *methodRules) WithCost(rules ...string) {
	for _, p := range r.rules {
		p.priced = p.priced || slices.Contains(rules, p.label)
	}
}

// Register implements bridge.Rules.
func (r *methodRules) Register(limiter any) {
	l := limiter.(*Limiter)
	for _, p := range r.rules {
		if !l.uses(p) { // a wrapper may be made for each call
			l.note(p)
		}
	}
}

// Open implements bridge.Rules.
func (r *methodRules) Open(limiter any, givesBack bool) bridge.Call {
	return limiter.(*Limiter).newCall(r.method, r.rules, len(r.rules), givesBack)
}

// Add implements bridge.Call.
func (c *call) Add(charge bridge.Charge) {
	if c.err == nil && c.next < len(c.rules) {
		c.err = c.add(c.rules[c.next], &charge)
	}
	c.next++ // Take reports an excess
}

// Take implements bridge.Call.
func (c *call) Take(ctx context.Context) (bridge.Taken, error) {
	defer c.free()
	if c.next != len(c.rules) { // a rule without a charge would not limit the call
		c.err = &KeyError{Method: c.method, Reason: fmt.Sprintf("found %d keys for %d rules", c.next, len(c.rules))}
	}
	if err := c.perform(ctx); err != nil {
		return nil, err
	}
	if !c.verdict.Admitted {
		return nil, c.refusal()
	}
	if !c.givesBack && c.wishes.charge == nil {
		return nil, nil
	}
	all := c.charges()
	c.wishes.charge.fill(all)
	return all, nil
}

// describe gives a refusal the message of the rule with the longest delay. messages belong to the first rules of the method, in their order. With
// "", or without a message, the message of the rule itself stays.
func describe(err error, messages []string) error {
	refusal, ok := err.(*TooManyRequestsError)
	if !ok || len(refusal.Violations) == 0 {
		return err
	}
	if i := refusal.longest().policy.index; i < len(messages) && messages[i] != "" {
		refusal.Message = messages[i]
	}
	return err
}
