// Package wrap has the functions that generated code calls, and [Keyed] for httplimit and contrib. A program does not call them itself, except
// [IsLimited] in a test of its wiring.
package wrap

import (
	"reflect"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Limited is implemented by every generated wrapper.
type Limited interface {
	// RateLimits returns the rules that the wrapper enforces.
	RateLimits() []ratelimit.Rule
}

// IsLimited reports whether v is a generated wrapper, or a decorator around one. A decorator must have a method Unwrap that returns the
// value which it decorates. Use IsLimited in a test of a program's wiring.
func IsLimited(v any) bool {
	for range 100 { // a decorator that unwraps to itself must not loop for ever
		if _, ok := v.(Limited); ok {
			return true
		}
		if IsNil(v) {
			return false
		}
		unwrap := reflect.ValueOf(v).MethodByName("Unwrap")
		if !unwrap.IsValid() || unwrap.Type().NumIn() != 0 || unwrap.Type().NumOut() != 1 {
			return false
		}
		v = unwrap.Call(nil)[0].Interface()
	}
	return false
}

// Next returns next, the value that a wrapper of typ (pkg.Type) calls. It panics if next is nil.
func Next[T any](typ string, next T) T {
	if IsNil(next) {
		panic("wrapper of " + typ + ": next is nil")
	}
	return next
}

// NeedGuard panics unless a guard of typ (pkg.Type) is there, and was made by its constructor.
func NeedGuard(typ string, there bool) {
	if !there {
		panic("guard of " + typ + ": it is nil, or was not made by its constructor")
	}
}
