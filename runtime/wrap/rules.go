package wrap

import (
	"slices"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

// Rules are the prepared rules of one method.
type Rules struct {
	method   string
	rules    []ratelimit.Rule
	prepared bridge.Rules
}

// NewRules prepares the rules of a method, whose name is pkg.Type.Method. A rule without a name gets the name of the method. NewRules
// panics if a rule is not valid.
func NewRules(method string, rules ...ratelimit.Rule) *Rules {
	prepared, err := bridge.Prepare(method, rules)
	if err != nil {
		panic(err)
	}
	return &Rules{method: method, rules: prepared.Rules().([]ratelimit.Rule), prepared: prepared}
}

// WithCost notes which rules have cost=, by their indices in NewRules: those that a [ratelimit.Charge] settles. It returns r.
func (r *Rules) WithCost(rules ...int) *Rules {
	r.prepared.WithCost(rules...)
	return r
}

// Rules returns the rules, with the names that errors and events show. The caller must not change them.
func (r *Rules) Rules() []ratelimit.Rule { return r.rules }

// NilKey returns a *ratelimit.KeyError, which says that expr is nil and a rule needs it. rule is the index of that rule in NewRules.
func (r *Rules) NilKey(rule int, expr string) error { return r.Missing(rule, expr, expr+" is nil") }

// Missing returns a *ratelimit.KeyError, which says why expr has no value although a rule needs it.
func (r *Rules) Missing(rule int, expr, reason string) error {
	return &ratelimit.KeyError{Method: r.method, Rule: r.rules[rule].Name, Expr: expr, Reason: reason}
}

// KeyError returns a *ratelimit.KeyError, which says that expr fails with err although a rule needs it.
func (r *Rules) KeyError(rule int, expr string, err error) error {
	return &ratelimit.KeyError{Method: r.method, Rule: r.rules[rule].Name, Expr: expr, Err: err}
}

// RulesOf returns the rules of several methods, each once.
func RulesOf(methods ...*Rules) []ratelimit.Rule {
	var all []ratelimit.Rule
	for _, m := range methods {
		for _, r := range m.rules {
			if !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all
}
