package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrTooManyRequests is what errors.Is finds in every refusal.
var ErrTooManyRequests = errors.New("too many requests")

const defaultMessage = "Too many requests."

// TooManyRequestsError is a refusal: the call was not made and nothing was charged. Under a rule with Wait, a caller who comes
// back before RetryAfter is over may be admitted after waiting.
type TooManyRequestsError struct {
	Method     string        // pkg.Type.Method
	Message    string        // of the rule with the longest delay
	RetryAfter time.Duration // until all rules would admit the call, if nothing else is admitted before
	Violations []Violation   // the rules that refused, in their order
}

// Violation is one rule's refusal.
type Violation struct {
	Rule       string        // its name
	Window     string        // such as "1m": see [Rule.Window]
	Key        string        // whose permits are used up, escaped and cut where needed; "" is everybody's
	Limit      int64         // permits per window
	Remaining  int64         // permits that the rule would admit now: fewer than the call takes
	RetryAfter time.Duration // until this rule would admit the call

	index   int    // of the rule among those of its method
	message string // the rule's
}

func (v Violation) String() string {
	s := fmt.Sprintf("%d per %s", v.Limit, v.Window)
	if v.Rule != "" {
		s = v.Rule + ": " + s
	}
	if v.Key != "" {
		s += " for " + strconv.Quote(v.Key)
	}
	return s
}

func (e *TooManyRequestsError) Error() string {
	rules := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		if v.Rule == e.Method {
			v.Rule = ""
		}
		rules[i] = v.String()
	}
	s := fmt.Sprintf("%s (retry after %s; %s)", strings.TrimSuffix(e.Message, "."), e.RetryAfter, strings.Join(rules, "; "))
	if e.Method == "" {
		return s
	}
	return e.Method + ": " + s
}

// Is reports that every TooManyRequestsError is ErrTooManyRequests.
func (e *TooManyRequestsError) Is(target error) bool { return target == ErrTooManyRequests }

// NeverAdmissibleError says that a call costs more than a rule can ever admit. To retry is pointless. A rule of limit 0
// answers every call with it; only then it is ErrTooManyRequests as well.
type NeverAdmissibleError struct {
	Method string
	Rule   string
	Key    string // as in Violation
	Cost   int64
	Limit  int64 // the largest cost that can be admitted

	what string // that is, if not the limit
}

func (e *NeverAdmissibleError) Error() string {
	what := cmp.Or(e.what, "limit")
	return fmt.Sprintf("%s: a cost of %d can never be admitted: the %s is %d", whose(e.Method, e.Rule), e.Cost, what, e.Limit)
}

// Is reports whether the rule refuses every call.
func (e *NeverAdmissibleError) Is(target error) bool {
	return target == ErrTooManyRequests && e.Limit == 0
}

// StoreError says that the store did not decide, or did not do what it was asked. The call was not made. Where the store is
// remote, it may have been charged.
type StoreError struct {
	Method string
	Err    error
}

func (e *StoreError) Error() string {
	return where(e.Method, "store") + ": " + e.Err.Error()
}

func (e *StoreError) Unwrap() error { return e.Err }

// KeyError says that it could not be computed whom a call counts for, or how much. The call was not made.
type KeyError struct {
	Method string
	Rule   string // its name
	Expr   string // the expression or template, as written
	Reason string // such as "doc is nil"; "" if Err says it all
	Err    error  // the cause, if an error was
}

func (e *KeyError) Error() string {
	parts := []string{whose(e.Method, e.Rule)}
	if e.Expr != "" && !strings.HasPrefix(e.Reason, e.Expr+" ") {
		parts = append(parts, e.Expr)
	}
	if e.Reason != "" {
		parts = append(parts, e.Reason)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

func (e *KeyError) Unwrap() error { return e.Err }

// whose names the method and the rule; a request under a rule without a name has neither.
func whose(method, rule string) string { return cmp.Or(where(method, rule), "rate limit") }

// where names the method, and what in it unless that has the same name.
func where(method, what string) string {
	switch {
	case method == "":
		return what
	case what == "" || what == method:
		return method
	default:
		return method + ": " + what
	}
}

// longest returns the violation with the longest delay, the first one of several.
func (e *TooManyRequestsError) longest() Violation {
	longest := e.Violations[0]
	for _, v := range e.Violations[1:] {
		if v.RetryAfter > longest.RetryAfter {
			longest = v
		}
	}
	return longest
}
