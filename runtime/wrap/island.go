package wrap

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
)

// Value returns the value of an island: an expression of a rule, as Go code. A panic of the island becomes a *ratelimit.KeyError that names the
// expression. If a function of the user panics, the first time is logged with its stack.
func Value[T any](rules *Rules, expr string, island func() T) (value T, err error) {
	done := false // recover costs a third of this function
	defer func() {
		if done {
			return
		}
		if cause := recover(); cause != nil { // nil if the island called runtime.Goexit
			err = rules.failed(expr, cause, value)
		}
	}()
	value, done = island(), true
	return value, nil
}

// Message returns the message of a rule. It returns "" if the message cannot be computed: that must not hide the refusal.
func Message(rules *Rules, island func() string) string {
	text, _ := Value(rules, "message", island)
	return text
}

// reason is the panic of an island that has no value. It becomes the Reason of the KeyError.
type reason string

// failure is the panic of an island in which a function returned an error.
type failure struct {
	error
	internal bool // the program is at fault
}

const isNil reason = "a part of it is nil"

// NotNil returns v, and panics if it is nil. An island calls it for the receiver of a method: a getter that accepts nil would give all nil
// callers the same budget.
func NotNil[T any](v T) T {
	if IsNil(v) {
		panic(isNil)
	}
	return v
}

// Must returns v, and panics if err is not nil.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(failure{err, false})
	}
	return v
}

// MustForLimit is [Must] for a function in limit= or anchor=, and for a limit that is no number of permits. The caller cannot be at fault.
func MustForLimit[T any](v T, err error) T {
	if err != nil {
		panic(failure{err, true})
	}
	return v
}

// Copy returns a pointer to a copy of v, for methods that need a pointer.
func Copy[T any](v T) *T { return &v }

// failed returns the error for an island that panicked. The program is at fault if a function panicked, but not if the island itself did: by nil,
// by an index, or by a division. The type of the island's value tells a limit from an anchor.
func (r *Rules) failed(expr string, cause, value any) error {
	switch cause := cause.(type) {
	case reason:
		return r.missing(expr, string(cause))
	case failure:
		if cause.internal {
			cause.error = decide.Unset{Argument: argumentOf(value), Err: cause.error}
		}
		return r.failure(expr, cause.error, cause.internal)
	case runtime.Error:
		switch {
		case !inIsland():
		case strings.Contains(cause.Error(), "nil pointer dereference"):
			return r.missing(expr, string(isNil))
		default: // an index out of range, or a key that cannot be compared
			return r.KeyError(expr, errors.New(strings.TrimPrefix(cause.Error(), "runtime error: ")))
		}
	}
	if _, again := r.panicked.LoadOrStore(expr, true); !again {
		slog.Error("ratelimit: a function panicked in an expression, which could not be computed; mend the function, which is first in the stack",
			"method", r.method, "rule", r.about(expr), "expr", expr, "panic", fmt.Sprintf("%T", cause), "stack", string(debug.Stack()))
	}
	return r.failure(expr, decide.Panic{Value: cause}, true)
}

// argumentOf returns the argument whose islands have values of this type.
func argumentOf(value any) string {
	if _, ok := value.(time.Time); ok {
		return "anchor"
	}
	return "limit"
}

// inIsland reports whether the code that panicked is in the file of the island, not in a function of the user.
func inIsland() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs[:])])
	var faulty, before string // the files of the code that panicked and of the previous frame
	for panicked := false; ; {
		f, more := frames.Next()
		ofRuntime := strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "internal/runtime/")
		switch {
		case panicked && faulty == "" && !ofRuntime:
			faulty = f.File
		case faulty != "" && strings.HasPrefix(f.Function, value):
			return faulty == before
		}
		panicked, before = panicked || f.Function == "runtime.gopanic", f.File
		if !more {
			return false
		}
	}
}

// value is the name of the function Value in a stack.
const value = "github.com/ratelimit-go/ratelimit/runtime/wrap.Value["

// SameTarget reports whether two pointers are nil, or point to equal values.
func SameTarget[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// OrEmpty returns an identity, or "" if the context carries none: OrEmpty(ClientIP(ctx)).
func OrEmpty(identity string, err error) string { return identity }
