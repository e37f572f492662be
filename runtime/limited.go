package ratelimit

import (
	"errors"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// Check returns nil if the rules are valid and the limiter's store can decide each of them, or else a *RuleError for each that
// it cannot. Not every store knows every algorithm. Call Check when the program starts; without it, the first call of such a
// rule fails with that error and charges nothing.
func (l *Limiter) Check(rules ...Rule) error {
	var failed []error
	for _, rule := range rules {
		p, err := rule.prepare("")
		if err == nil {
			err = l.supports(p, p.Wait.Microseconds())
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// supports returns why the store cannot decide a rule that may delay its calls by a wait, or nil.
func (l *Limiter) supports(rule *prepared, wait int64) error {
	if l.limited == nil || rule.Scope == ScopeInstance {
		return nil
	}
	for _, numbers := range []*decide.Rule{rule.numbers, rule.block} {
		if numbers == nil {
			continue
		}
		if argument, reason := l.limited.Unsupported(numbers, wait); reason != "" {
			return rule.wrong(argument, "%s", reason)
		}
	}
	return nil
}

// fits returns why the store cannot decide the rules of the call together, though it can decide each of them, or nil.
func (c *call) fits() error {
	if c.limiter.limited == nil || len(c.fleet.Claims) == 0 {
		return nil
	}
	var rule *prepared // the last one of the fleet, or one of this instance that may delay the call
	delay := int64(0)
	for i := range c.asked {
		a := &c.asked[i]
		switch {
		case a.part == &c.fleet && delay == 0:
			rule = a.rule
		case a.part == &c.local && a.part.Claims[a.claim].Wait > delay:
			rule, delay = a.rule, a.part.Claims[a.claim].Wait
		}
	}
	if argument, reason := c.limiter.limited.Unfit(c.fleet.Claims, delay); reason != "" {
		return rule.wrong(argument, "%s", reason)
	}
	return nil
}
