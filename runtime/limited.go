package ratelimit

import "slices"

// Check returns nil if all rules are valid and the limiter's store can decide each of them. Otherwise the error wraps a *RuleError for each
// rule that is not. Not every store knows every algorithm. Call Check when the program starts: without it, the first call of such a rule
// fails with that error and charges nothing. After Check, [Limiter.Ping] also asks for the permissions that these rules need.
func (l *Limiter) Check(rules ...Rule) error {
	var failed []error
	for _, rule := range rules {
		p, err := rule.prepare("")
		if err == nil {
			err = l.supports(p, p.Wait.Microseconds())
		}
		if err == nil {
			l.used.expect(p)
		}
		failed = append(failed, err)
	}
	return joinErrors(failed...)
}

// supports returns why the store cannot decide a rule that may delay its calls by a wait, or nil.
func (l *Limiter) supports(rule *prepared, wait int64) error {
	if l.limited == nil || rule.Scope == ScopeInstance {
		return nil
	}
	if argument, reason := l.limited.Unsupported(rule.numbers, wait); reason != "" {
		return rule.wrong(argument, "%s", reason)
	}
	return nil
}

// fits returns why the store cannot decide the rules of the call together, or nil. It can decide each of them.
func (c *call) fits() error {
	if c.limiter.limited == nil || len(c.fleet.Claims) == 0 {
		return nil
	}
	argument, reason := c.limiter.limited.Unfit(c.fleet.Claims)
	if reason == "" {
		return nil
	}
	i := slices.IndexFunc(c.asked, func(a asked) bool { return a.part == &c.fleet })
	return c.asked[i].rule.wrong(argument, "%s", reason)
}
