package ratelimit

import "github.com/ratelimit-go/ratelimit/runtime/internal/bridge"

// Check returns nil if all rules are valid and the limiter's store can decide each of them. Otherwise the error wraps a *RuleError for each
// rule that fails. Not every store knows every algorithm. Call Check when the program starts: without it, the first call under such a rule
// fails with that error and charges nothing. After Check, [Limiter.Ping] also checks the permissions that these rules need.
func (l *Limiter) Check(rules ...Rule) error {
	var failed []error
	for _, rule := range rules {
		p, err := rule.prepare("")
		if err == nil {
			err = l.supports(p, p.Wait.Microseconds())
		}
		if err == nil {
			l.note(p, bridge.Limit{})
		}
		failed = append(failed, err)
	}
	return joinErrors(failed...)
}

// supports returns an error if the store cannot decide a rule that may delay its calls by wait microseconds.
func (l *Limiter) supports(rule *prepared, wait int64) error {
	if rule.Scope == ScopeInstance {
		return nil
	}
	if argument, reason := l.store.Unsupported(rule.numbers, wait); reason != "" {
		return rule.wrong(argument, "%s", reason)
	}
	return nil
}
