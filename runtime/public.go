package ratelimit

import (
	"context"
	"errors"

	"github.com/ratelimit-go/ratelimit/internal/decide"
)

// What the machinery of a limiter makes by this package, because programs see the types: see decide.Public.

func keyError(method string, rule *decide.Rule, expr, reason string) error {
	e := &KeyError{Method: method, Expr: expr, Reason: reason}
	if rule != nil {
		e.Rule = rule.Label
	}
	return e
}

func tooCostly(c *decide.Call, a *decide.Asked, most int64, what string) error {
	return &NeverAdmissibleError{
		Method: c.Method(), Rule: a.Rule.Label, Key: shown(a.Claim.Subject), Cost: a.Cost, Limit: most, what: what,
	}
}

func ruleError(rule, argument, reason string) error {
	return &RuleError{Rule: rule, Argument: argument, Reason: reason}
}

// storeError returns a *StoreError, or the *RuleError in err.
func storeError(method string, err error) error {
	if unfit, ok := errors.AsType[*RuleError](err); ok {
		return unfit
	}
	return &StoreError{Method: method, Err: err}
}

// isAnswer reports whether a store says that it cannot have a rule.
func isAnswer(err error) bool {
	_, unfit := errors.AsType[*RuleError](err)
	return unfit
}

// failed tells the observers that the charges of a call could not be computed.
func (o *options) failed(ctx context.Context, l *decide.Limiter, method string, err error) error {
	err = discreet(l, err)
	o.warnMissing(ctx, err)
	o.observe(ctx, &Event{Kind: EventFailed, Method: method, Rules: []Outcome{{Rule: ruleIn(err)}}, Err: err})
	return err
}

// warnMissing logs, once for a rule, that the context of a call carries no identity, and what to do.
func (o *options) warnMissing(ctx context.Context, err error) {
	e, ok := errors.AsType[*KeyError](err)
	if !ok || !e.Missing {
		return
	}
	if _, again := o.missing.LoadOrStore(ruleIn(err), true); again {
		return
	}
	o.Logger.WarnContext(ctx, "a rule refuses calls because "+e.Reason+"; for an address, wrap the handler by httplimit.ClientIP().Handler, or "+
		"use the interceptors of grpclimit; for a user, call ratelimit.WithUserID where you authenticate",
		"rule", ruleIn(err), "method", e.Method)
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
