package ratelimit

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
