package exprvm

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
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
	r := reflect.ValueOf(plain(v))
	switch {
	case r.Kind() == reflect.String:
		return r.String(), nil
	case r.Kind() == reflect.Bool:
		return strconv.FormatBool(r.Bool()), nil
	case r.CanInt():
		return strconv.FormatInt(r.Int(), 10), nil
	case r.CanUint() && r.Kind() != reflect.Uintptr:
		return strconv.FormatUint(r.Uint(), 10), nil
	}
	return "", fmt.Errorf("%T has no stable text form", v)
}

func boolean(v any) (bool, error) {
	b, ok := plain(v).(bool)
	switch {
	case ok:
		return b, nil
	case plain(v) == nil:
		return false, errNil
	}
	return false, fmt.Errorf("a bool is needed; this is %T", v)
}

func duration(v any) (time.Duration, error) {
	d, ok := v.(time.Duration)
	switch {
	case ok:
		return d, nil
	case plain(v) == nil:
		return 0, errNil
	}
	return 0, fmt.Errorf("a time.Duration is needed; this is %T", v)
}

func integer(v any) (int64, error) {
	r := reflect.ValueOf(plain(v))
	switch {
	case !r.IsValid():
		return 0, errNil
	case isInt(r):
		return whole(r)
	}
	return 0, fmt.Errorf("an integer is needed; this is %T", v)
}
