package exprvm

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/expr-lang/expr/builtin"

	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

var errAddress = errors.New("a text would show an address, which differs from call to call")

// shown returns string(v).
func shown(args ...any) any {
	v := target(args[0])
	r := reflect.ValueOf(v)
	switch {
	case !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil():
		panic(errNil)
	case printsItself(r):
		return builtin.String(v)
	}
	if r = reflect.Indirect(r); hasAddress(r) {
		panic(errAddress)
	}
	if r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8 {
		return string(r.Bytes())
	}
	return builtin.String(r.Interface())
}

// hasAddress reports whether fmt would print a memory address for r.
func hasAddress(r reflect.Value) bool {
	if printsItself(r) {
		return false
	}
	switch r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return !r.IsNil()
	case reflect.Interface:
		return hasAddress(r.Elem())
	case reflect.Slice, reflect.Array, reflect.Map:
		for key, element := range r.Seq2() {
			if hasAddress(key) || hasAddress(element) {
				return true
			}
		}
	case reflect.Struct:
		for i := range r.NumField() {
			if hasAddress(r.Field(i)) {
				return true
			}
		}
	}
	return false
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
