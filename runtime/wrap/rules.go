package wrap

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Rules are the prepared rules of one method.
type Rules struct {
	method   string
	rule     string // the name of the rule that errors are about; "" if the expression tells
	rules    []ratelimit.Rule
	prepared *decide.Rules
	of       *Type // nil if they are of no type
	index    int   // among the methods of the type
	named    map[string]*Rules
	panicked *sync.Map // the expressions of which a panic was logged
}

// NewRules prepares the rules of a method, whose name is pkg.Type.Method. A rule without a name gets the name of the method. NewRules
// panics if a rule is not valid.
func NewRules(method string, rules ...ratelimit.Rule) *Rules {
	prepared, err := ratelimit.Prepare(method, rules...)
	if err != nil {
		panic(err)
	}
	all := Rules{
		method: method, rules: prepared.Rules(), prepared: (*decide.Rules)(prepared), named: map[string]*Rules{}, panicked: new(sync.Map),
	}
	for _, r := range all.rules {
		one := all
		one.rule = r.Name
		all.named[r.Name] = &one
	}
	return &all
}

// Named returns r for errors about the rule of this name. Without Named, they are about the first rule with the expression in its key or member.
func (r *Rules) Named(rule string) *Rules { return r.named[rule] }

// at returns r for errors about the rule with an index.
func (r *Rules) at(rule int) *Rules { return r.named[r.rules[rule].Name] }

// WithCost notes which rules have cost=, by the names that errors show: those that a [ratelimit.Charge] settles. Without names, all rules have
// it. WithCost returns r.
func (r *Rules) WithCost(rules ...string) *Rules {
	r.prepared.WithCost(rules...)
	return r
}

// Rules returns the rules, with the names that errors and events show. The caller must not change them.
func (r *Rules) Rules() []ratelimit.Rule { return r.rules }

// NilKey returns a *ratelimit.KeyError, which says that the parameter with the context is nil.
func (r *Rules) NilKey(param string) error { return r.missing(param, param+" is nil") }

// missing returns a *ratelimit.KeyError, which says why expr has no value although a rule needs it.
func (r *Rules) missing(expr, why string) error {
	return &ratelimit.KeyError{Method: r.method, Rule: r.about(expr), Expr: expr, Reason: why}
}

// KeyError returns a *ratelimit.KeyError, which says that expr fails with err although a rule needs it.
func (r *Rules) KeyError(expr string, err error) error { return r.failure(expr, err, false) }

// failure is KeyError for an error that may be the program's mistake. Every error that wraps ErrInternal is, and a missing identity.
func (r *Rules) failure(expr string, err error, internal bool) error {
	if missing, ok := errors.AsType[decide.Missing](err); ok {
		return &ratelimit.KeyError{Method: r.method, Rule: r.about(expr), Expr: expr, Reason: missing.Error(), Missing: true, Internal: true}
	}
	internal = internal || errors.Is(err, ratelimit.ErrInternal)
	return &ratelimit.KeyError{Method: r.method, Rule: r.about(expr), Expr: expr, Err: err, Internal: internal}
}

// about returns the name of the rule that an error of expr is about, or that of the method.
func (r *Rules) about(expr string) string {
	uses := func(rule ratelimit.Rule) bool { return strings.Contains(rule.Key+rule.Distinct, "{"+expr+"}") }
	if i := slices.IndexFunc(r.rules, uses); r.rule == "" && i >= 0 {
		return r.rules[i].Name
	}
	return cmp.Or(r.rule, r.method)
}
