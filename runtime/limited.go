package runtime

import (
	"errors"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// Check returns nil if the limiter's store can decide all of the rules, or else a *RuleError for each that it cannot: not
// every store knows every algorithm. Call it at the start of a program; without it, the first call of such a rule fails with
// that error, and charges nothing.
func (l *Limiter) Check(rules ...*Rules) error {
	var failed []error
	for _, r := range rules {
		for _, rule := range r.rules {
			failed = append(failed, l.supports(rule, rule.Wait.Microseconds()))
		}
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
