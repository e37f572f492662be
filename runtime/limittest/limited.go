package limittest

import (
	"reflect"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// IsLimited reports whether v is a generated wrapper, or a decorator around one. A decorator must have a method Unwrap that returns the
// value which it decorates. Use IsLimited in a test of a program's wiring. It is false for a guard, and for what a generated function Limit... returns.
func IsLimited(v any) bool {
	for range 100 { // a decorator that unwraps to itself must not loop for ever
		if _, ok := v.(interface{ RateLimits() []ratelimit.Rule }); ok {
			return true
		}
		if wrap.IsNil(v) {
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
