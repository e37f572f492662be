package ratelimit

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

func init() {
	bridge.Prepare = func(method string, rules any) (bridge.Rules, error) { return prepareMethod(method, rules.([]Rule)) }
	bridge.Describe = describe
}

// methodRules are the prepared rules of a method.
type methodRules struct {
	method string
	rules  []*prepared
}

func prepareMethod(method string, rules []Rule) (*methodRules, error) {
	r := &methodRules{method: method}
	for _, rule := range rules {
		if rule.Name == "" {
			rule.Name = method
		}
		p, err := rule.prepare(rule.suffix(method))
		if err = cmp.Or(err, rule.checkQueue()); err != nil {
			return nil, err
		}
		r.rules = append(r.rules, p)
	}
	return r, nil
}

// Rules implements bridge.Rules.
func (r *methodRules) Rules() any {
	rules := make([]Rule, len(r.rules))
	for i, p := range r.rules {
		rules[i] = p.Rule
	}
	return rules
}

// Open implements bridge.Rules.
func (r *methodRules) Open(ctx context.Context, limiter any) bridge.Call {
	c := limiter.(*Limiter).newCall(ctx, r.method)
	c.rules, c.next, c.err = r.rules, 0, nil
	return c
}

// Ask implements bridge.Call.
func (c *call) Ask(charge bridge.Charge) {
	if c.err == nil && c.next < len(c.rules) {
		c.err = c.add(c.rules[c.next], &charge)
	}
	c.next++
}

// Take implements bridge.Call.
func (c *call) Take(ctx context.Context) error {
	defer c.free()
	return c.take(ctx)
}

// Begin implements bridge.Call.
func (c *call) Begin(ctx context.Context) (bridge.Taken, error) {
	defer c.free()
	if err := c.take(ctx); err != nil {
		return nil, err
	}
	return c.keep(func(r *prepared) bool { return r.Refund == RefundError }), nil
}

// take decides the call of a method.
func (c *call) take(ctx context.Context) error {
	if c.next != len(c.rules) { // else it would be limited too little
		return &KeyError{Method: c.method, Reason: fmt.Sprintf("found %d keys for %d rules", c.next, len(c.rules))}
	}
	if c.err != nil {
		return c.err
	}
	o, err := c.decide(ctx)
	if err != nil {
		return err
	}
	if err := c.sleep(ctx, o.wait); err != nil {
		return err
	}
	c.report(ctx, o.admitted)
	if !o.admitted {
		return c.refusal(ModeEnforce)
	}
	return nil
}

// describe gives a refusal the message of the rule that it is about.
func describe(err error, messages []string) error {
	refusal, ok := err.(*TooManyRequestsError)
	if !ok || len(refusal.Violations) == 0 {
		return err
	}
	if i := refusal.longest().index; i < len(messages) && messages[i] != "" {
		refusal.Message = messages[i]
	}
	return err
}
