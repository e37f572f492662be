package exprvm

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/expr-lang/expr/builtin"

	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

var errAddress = errors.New("a text would show an address, which differs from call to call")

// shown returns string(v). The first argument is the evaluation.
func shown(args ...any) any {
	v := target(args[1])
	r := reflect.ValueOf(v)
	switch {
	case !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil():
		panic(errNil)
	case basics[r.Kind()] != nil: // a text was counted as read
		return builtin.String(v)
	}
	w := walked(v, func(v any) bool { return printsItself(reflect.ValueOf(v)) })
	args[0].(*evaluation).count(w.weight)
	to := reflect.Indirect(r)
	switch {
	case printsItself(r):
		return builtin.String(v)
	case w.address:
		panic(errAddress)
	case to.Kind() == reflect.Slice && to.Type().Elem().Kind() == reflect.Uint8:
		return string(to.Bytes())
	}
	return builtin.String(to.Interface())
}

// printsItself reports whether fmt prints r by calling a method of r.
func printsItself(r reflect.Value) bool {
	if !r.IsValid() || !r.CanInterface() || wrap.IsNil(r.Interface()) {
		return false
	}
	switch r.Interface().(type) {
	case fmt.Formatter, fmt.Stringer, error:
		return true
	}
	return false
}
