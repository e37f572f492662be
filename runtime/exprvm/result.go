package exprvm

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

var errNil = errors.New("the value is nil")

// text returns v in a stable text form: by its method MarshalText, or else by its method String, or else by its kind.
func text(v any) (string, error) {
	if wrap.IsNil(v) {
		return "", errNil
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case encoding.TextMarshaler:
		b, err := v.MarshalText()
		return string(b), err
	case fmt.Stringer:
		return v.String(), nil
	}
	p := plain(v)
	if r := reflect.ValueOf(p); isInt(r) || r.Kind() == reflect.String || r.Kind() == reflect.Bool {
		return fmt.Sprint(p), nil
	}
	return "", fmt.Errorf("%T has no stable text form", v)
}

func boolean(v any) (bool, error) { return needed[bool](v, "a bool") }

func duration(v any) (time.Duration, error) { return needed[time.Duration](v, "a time.Duration") }

// needed returns the plain form of v, which has to be a T.
func needed[T any](v any, what string) (zero T, err error) {
	switch p := plain(v).(type) {
	case T:
		return p, nil
	case nil:
		return zero, errNil
	}
	return zero, fmt.Errorf("%s is needed; this is %T", what, v)
}

func integer(v any) (int64, error) {
	if r := reflect.ValueOf(plain(v)); isInt(r) {
		return whole(r)
	}
	return needed[int64](v, "an integer")
}
