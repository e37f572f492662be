package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

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

// wrongLimit returns the error of a limit that comes with a call and is out of its bounds.
func (o *options) wrongLimit(method string, rule *decide.Rule, reason string) error {
	return o.mistake(method, rule, "", reason, "make limit= give a limit within these bounds; -1 is no limit")
}

// wrongAnchor returns the error of an anchor from which no windows count.
func (o *options) wrongAnchor(method string, rule *decide.Rule, reason string) error {
	return o.mistake(method, rule, "anchor", reason, "make anchor=, or Anchor of the request, give the time from which the windows of the key count, such as its first bill")
}

// mistake returns the error of a value that the program has made wrong, and logs how to cure it.
func (o *options) mistake(method string, rule *decide.Rule, expr, reason, cure string) error {
	e := &KeyError{Method: method, Rule: rule.Label, Expr: expr, Reason: reason, Internal: true}
	o.logOnce(context.Background(), slog.LevelError, e, cure)
	return e
}

func tooCostly(c *decide.Call, a *decide.Asked, most int64, what string) error {
	return &NeverAdmissibleError{
		Method: c.Method(), Rule: a.Rule.Label, Key: shown(a.Claim.Subject), Cost: a.Cost, Limit: most, Unreported: a.Rule.Unreported, what: what,
	}
}

func ruleError(rule, argument, reason string) error {
	return &RuleError{Rule: rule, Argument: argument, Reason: reason}
}

func methodError(method, argument, reason string) error {
	return &RuleError{Rule: method, Argument: argument, Reason: reason, ofMethod: true}
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
	o.logMistake(ctx, err)
	o.observe(ctx, &Event{Kind: EventFailed, Method: method, Rules: []Outcome{{Rule: ruleIn(err)}}, Err: err})
	return err
}

// logMistake logs a mistake of the program, once for a rule and each kind of mistake, and what to do. Package wrap has logged panics.
func (o *options) logMistake(ctx context.Context, err error) {
	e, ok := errors.AsType[*KeyError](err)
	if !ok || !e.Internal || isPanic(e) {
		return
	}
	const (
		forLimit  = "make limit= give a limit, such as that of the smallest plan, or -1 for no limit"
		forAnchor = "make anchor= give the time from which the windows of the key count, such as its first bill"
	)
	level, cure := slog.LevelError, forLimit+"; "+forAnchor
	unset, _ := errors.AsType[decide.Unset](e)
	switch {
	case e.Missing:
		level, cure = slog.LevelWarn, "for an address, wrap the handler by httplimit.ClientIP().Handler, or use the interceptors of grpclimit, behind "+
			"a Unix socket with ClientIP().Socket(); for a user, call ratelimit.WithUserID where you authenticate; under gin, set ContextWithFallback or pass ginlimit.Context(c)"
	case errors.Is(e, ErrInternal):
		cure = "its function says that the program is at fault, by ratelimit.ErrInternal"
	case unset.Argument == "limit":
		cure = forLimit
	case unset.Argument == "anchor":
		cure = forAnchor
	}
	o.logOnce(ctx, level, e, cure)
}

// logOnce logs a mistake of the program and its cure, unless it has done so for the rule.
func (o *options) logOnce(ctx context.Context, level slog.Level, e *KeyError, cure string) {
	if _, again := o.mistakes.LoadOrStore(cure+ruleIn(e), true); !again {
		o.Logger.Log(ctx, level, "a rule refuses calls, and the program is at fault: "+cmp.Or(e.Reason, "an expression fails")+"; "+cure,
			"rule", ruleIn(e), "method", e.Method, "expr", e.Expr, "err", e.Error())
	}
}

func isPanic(err error) bool {
	_, is := errors.AsType[decide.Panic](err)
	return is
}

// describe gives a refusal the message of the rule with the longest delay. messages belong to the first rules of the method, in their order. With
// "", or without a message, the message of the rule itself stays.
func describe(err error, messages []string) error {
	refusal, ok := err.(*TooManyRequestsError)
	if !ok || len(refusal.Violations) == 0 {
		return err
	}
	for i := range refusal.Violations {
		if v := &refusal.Violations[i]; int(v.policy.index) < len(messages) && messages[v.policy.index] != "" {
			v.message = messages[v.policy.index]
		}
	}
	refusal.Message = cmp.Or(longest(refusal.Violations).message, refusal.Message)
	return err
}
