package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// ErrTooManyRequests matches every [TooManyRequestsError] in errors.Is.
var ErrTooManyRequests = errors.New("too many requests")

const defaultMessage = "Too many requests."

// TooManyRequestsError is a refusal: the call was not made, and nothing was charged. If a rule lets calls wait, a caller who comes back
// before RetryAfter may still be admitted. [Decision] says how exact RetryAfter is.
//
// For example, two rules refuse a call, one for 5 seconds and one for 3 minutes. Then RetryAfter is 3 minutes, the Message is that of the
// second rule, and Violations has both.
type TooManyRequestsError struct {
	Method     string        // pkg.Type.Method; "" for requests
	Message    string        // of the refusing rule with the longest delay; clients may read that of ClientMessage
	RetryAfter time.Duration // until all rules would admit the call, if nothing else is admitted before, apart from Concurrency; 0 if Never
	Never      bool          // a rule of limit 0 refused: retrying is pointless
	Violations []Violation   // the rules that refused, in their order
}

// Violation is the refusal of one rule. For example, ann has used all ten permits of a rule "search" with a Limit of 10 per minute, the first
// of them 55 seconds ago: Rule is "search", Window "1m", Key "ann", Limit 10, Remaining 0, and More and RetryAfter are 5 seconds. If her call costs
// 3, and the third permit was taken 40 seconds ago, RetryAfter is 20 seconds.
type Violation struct {
	Rule       string        // its name
	Window     string        // such as "1m": see [Rule.Window]
	Key        string        // whose permits are used up, escaped and cut where needed; "" is everybody's
	Limit      int64         // permits per window
	Remaining  int64         // permits that the rule would admit now; unless Never, at most one less than the call costs
	More       time.Duration // until more than Remaining is there; 0 if Never, and under Concurrency
	RetryAfter time.Duration // until this rule would admit the call; 0 if Never, and under Concurrency, as nobody knows when calls end
	Never      bool          // the limit is 0; in shadow mode also: the call costs more than the rule ever admits
	Running    int64         // under Concurrency, permits of calls that run: 4 of a Limit of 4, for example; more if the limit was lowered

	policy  policy
	burst   int64  // permits of a full bucket, or 0
	message string // the rule's
}

// String returns a text such as `login: 10 per minute (leaky-bucket) for "ann"`.
func (v Violation) String() string {
	s := strconv.FormatInt(v.Limit, 10) + " " + perWindow(v.Window)
	if v.Window == "" { // a client made v from the answer of a server that did not say
		s = "limit " + strconv.FormatInt(v.Limit, 10)
	}
	if v.Rule != "" {
		s = v.Rule + ": " + s
	}
	if v.Key != "" {
		s += " for " + strconv.Quote(v.Key)
	}
	return s
}

// perWindow puts the text of Rule.Window into words: "per minute (leaky-bucket)" for "leaky:1m".
func perWindow(window string) string {
	words, name, note := "per ", window, ""
	if rest, ok := strings.CutPrefix(window, "distinct:"); ok {
		words, name = "different ones per ", rest
	}
	if expr, ok := strings.CutPrefix(name, "cron:"); ok {
		expr, note, _ = strings.Cut(expr, ":")
		name = "period of cron " + expr
		if unit := period.Calendar(expr); unit != "" {
			name = "calendar " + unit
		}
	} else if text, ok := strings.CutPrefix(name, "every:"); ok {
		name, note, _ = strings.Cut(text, ":")
		if every, err := period.ParseEvery(name); err == nil {
			name = every.Words()
		}
	} else if kind, rest := engine.AlgorithmOf(name); wordsOf[kind].window != "" {
		return wordsOf[kind].window
	} else if rest != name {
		name, _, _ = strings.Cut(rest, ":")
		note = kind.String()
	}
	words += period.Word(name)
	if note != "" {
		words += " (" + note + ")"
	}
	return words
}

// Error returns the message, the delay, and the rules that refused.
func (e *TooManyRequestsError) Error() string {
	var reasons []string
	switch {
	case e.Never:
		reasons = append(reasons, "never admitted")
	case e.RetryAfter > 0:
		reasons = append(reasons, "retry after "+e.RetryAfter.String())
	}
	for _, v := range e.Violations {
		if v.Rule == e.Method {
			v.Rule = ""
		}
		reasons = append(reasons, v.String())
	}
	s := fmt.Sprintf("%s (%s)", strings.TrimSuffix(e.Message, "."), strings.Join(reasons, "; "))
	if e.Method != "" {
		s = e.Method + ": " + s
	}
	return printable.Line(s)
}

// ClientMessage returns the message that clients may read. It is that of the rule with the longest delay, among the refusing rules that are not
// Unreported. If only Unreported rules refuse, it is "Too many requests.". If the error comes from another program, or a program has made it, it is
// the Message.
//
// For example, an Unreported rule refuses for an hour, and one with the message "One code a minute." for 20 seconds. Then it is "One code a minute.",
// and RetryAfter is an hour.
func (e *TooManyRequestsError) ClientMessage() string {
	if len(e.Violations) == 0 || !longest(e.Violations).policy.unreported {
		return e.Message
	}
	reported := slices.DeleteFunc(slices.Clone(e.Violations), func(v Violation) bool { return v.policy.unreported })
	if len(reported) == 0 {
		return defaultMessage
	}
	return cmp.Or(longest(reported).message, defaultMessage)
}

// Is reports whether target is [ErrTooManyRequests].
func (e *TooManyRequestsError) Is(target error) bool { return target == ErrTooManyRequests }

// NeverAdmissibleError says that a call costs more than a rule can ever admit. Retrying is pointless. It does not match
// [ErrTooManyRequests]. If another rule of the call has a [KeyError], the call gets that one.
//
// For example, a request has a Cost of 30 under a TokenBucket with a Limit of 60 a minute and a Burst of 10. Then Cost is 30, and Limit is 10.
type NeverAdmissibleError struct {
	Method string // pkg.Type.Method; "" for requests
	Rule   string // its name
	Key    string // as in Violation
	Cost   int64  // permits
	Limit  int64  // the largest cost that can be admitted

	Unreported bool // the rule is Unreported: clients should not see Cost and Limit. A client of such a server has 0 for both

	what string // what Limit is, if it is not the rule's limit
}

// Error returns the cost, and the largest one that can be admitted.
func (e *NeverAdmissibleError) Error() string {
	if e.Unreported && e.Cost == 0 && e.Limit == 0 { // from a server that does not say
		return printable.Line(whose(e.Method, e.Rule) + ": the cost can never be admitted")
	}
	return printable.Line(fmt.Sprintf("%s: a cost of %d can never be admitted: the %s is %d",
		whose(e.Method, e.Rule), e.Cost, cmp.Or(e.what, "limit"), e.Limit))
}

// StoreError says that the store failed to decide a call, or to do what it was asked. The call was not made. A remote store may still have
// charged it. For example, a server does not reply within the timeout of 250 ms. Then Err says "no reply within 250ms", and the next call
// of the caller may find that one permit more is used.
type StoreError struct {
	Method string // pkg.Type.Method; "" for requests
	Err    error  // the cause
}

// Error returns the text of the cause, with the method.
func (e *StoreError) Error() string {
	return printable.Line(fmt.Sprintf("%s: %v", where(e.Method, "store"), e.Err))
}

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// KeyError says that the key, cost or limit of a call could not be computed, is too long, or is out of range. The call was not made, and
// nothing was charged. For example, a method has cost="n", and is called with an n of -1. Then Rule names the rule, and Reason is "the cost
// is -1; expected 0 or more".
type KeyError struct {
	Method string // pkg.Type.Method; "" for requests
	Rule   string // its name
	Expr   string // the expression or template, as written
	Reason string // such as "a part of it is nil"; "" if Err says it all
	Err    error  // the cause, or nil

	// Missing says that the context carries no client IP or no user ID: see [WithClientIP] and [WithUserID]. Then Internal is true, too.
	Missing bool
	// Internal says that the program is at fault, not the caller: a function of limit= or anchor= fails, a function panics, an identity is missing,
	// a limit that comes with a call is out of its bounds, its anchor is the zero time or not in the years 1 to 9999, or Err wraps [ErrInternal].
	// It is answered with 500, and logged once for a rule, with the cure. For example, limit="planOf(ctx)" fails because its database is away. If a
	// KeyError is not Internal, the caller is told so with 400: it has sent no key, for example.
	Internal bool
}

// ErrInternal makes the error of a function in an expression the program's mistake, and not the caller's: see [KeyError.Internal]. For example, the
// function of key="{teamOf(ctx, id)}" returns fmt.Errorf("%w: no database", ratelimit.ErrInternal), and callers get 500 instead of 400.
var ErrInternal = errors.New("internal error")

// Error returns which rule and expression failed, and why.
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
	return printable.Line(strings.Join(parts, ": "))
}

// Unwrap returns the cause, or nil.
func (e *KeyError) Unwrap() error { return e.Err }

// RuleError says what is wrong with a [Rule], an [Override], or the requests of a call. For example, a rule "exports" with Concurrency has
// a Limit of 5000. Then Rule is "exports", Argument "limit", and Reason "found 5000; expected 0 to 1000 for a concurrency rule".
type RuleError struct {
	Rule     string // its name; if the error is about no single rule, pkg.Type.Method or ""
	Argument string // the argument of the directive that is wrong, such as "limit" or "per"
	Reason   string // what was found, and what to write

	ofMethod bool // Rule is pkg.Type.Method
}

// Error returns which argument of which rule or method is wrong, and why.
func (e *RuleError) Error() string {
	text := e.Argument + ": " + e.Reason
	switch {
	case e.ofMethod:
		text = where(e.Rule, text)
	case e.Rule != "":
		text = "rule " + strconv.Quote(e.Rule) + ": " + text
	}
	return printable.Line(text)
}

// whose returns the text of where, or "rate limit" for a request whose rule has no name.
func whose(method, rule string) string { return cmp.Or(where(method, rule), "rate limit") }

// where returns "method: what", or only one of the two if the other is empty or says the same. The name of an unnamed rule is that of its
// method, perhaps followed by "#2".
func where(method, what string) string {
	switch {
	case method == "" || strings.HasPrefix(what, method+"#"):
		return what
	case what == "" || what == method:
		return method
	default:
		return method + ": " + what
	}
}

// longest returns the first of the violations with the longest delay. A violation that is Never has the longest.
func longest(violations []Violation) *Violation {
	longest := &violations[0]
	for i := range violations {
		if v := &violations[i]; !longest.Never && (v.Never || v.RetryAfter > longest.RetryAfter) {
			longest = v
		}
	}
	return longest
}

// LogValue implements slog.LogValuer.
func (e *TooManyRequestsError) LogValue() slog.Value { return slog.GroupValue(e.fields()...) }

// LogValue implements slog.LogValuer.
func (e *NeverAdmissibleError) LogValue() slog.Value { return slog.GroupValue(e.fields()...) }

// LogValue implements slog.LogValuer.
func (e *StoreError) LogValue() slog.Value { return slog.GroupValue(e.fields()...) }

// LogValue implements slog.LogValuer.
func (e *KeyError) LogValue() slog.Value { return slog.GroupValue(e.fields()...) }

// LogValue implements slog.LogValuer.
func (e *RuleError) LogValue() slog.Value { return slog.GroupValue(e.fields()...) }
