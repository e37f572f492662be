// Package wrap is what generated code calls. A program does not call it by hand, except for [IsLimited] in a test of its wiring.
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

// IsLimited reports whether v is a generated wrapper, or a decorator around one whose method Unwrap returns what it decorates. A
// test of a program's wiring calls it.
func IsLimited(v any) bool {
	for range 100 { // more decorators than that unwrap themselves
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

// Next returns next, which a wrapper of typ (pkg.Type) is to call. It panics if next is nil.
func Next[T any](typ string, next T) T {
	if IsNil(next) {
		panic("wrapper of " + typ + ": next is nil")
	}
	return next
}

// Limiter returns l, which a wrapper of typ (pkg.Type) is to ask. It panics if l is nil.
func Limiter(typ string, l *ratelimit.Limiter) *ratelimit.Limiter {
	if l == nil {
		panic("wrapper of " + typ + ": the limiter is nil")
	}
	return l
}
