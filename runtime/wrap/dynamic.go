package wrap

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

var (
	errNil     = errors.New("the value is nil")
	errAddress = errors.New("a text would show an address, which differs from call to call")
)

// TextOf returns v as a text for a key: by its method MarshalText, or else by its method String, or else by its kind. TextOf(int8(5)) is "5". It
// is an error if v is nil, or if it has no such method and is no text, bool or integer.
func TextOf(v any) (string, error) {
	if IsNil(v) {
		return "", errNil
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case encoding.TextMarshaler:
		text, err := v.MarshalText()
		return string(text), err
	case fmt.Stringer:
		return v.String(), nil
	}
	switch r := target(v); {
	case r.Kind() == reflect.String:
		return r.String(), nil
	case r.Kind() == reflect.Bool:
		return strconv.FormatBool(r.Bool()), nil
	case r.CanInt():
		return strconv.FormatInt(r.Int(), 10), nil
	case r.CanUint() && r.Kind() != reflect.Uintptr:
		return strconv.FormatUint(r.Uint(), 10), nil
	case !r.IsValid():
		return "", errNil
	}
	return "", fmt.Errorf("%T has no stable text form; expected a text, a bool, an integer, or a type with a method String or MarshalText", v)
}

// StringOf returns what fmt prints for v: StringOf([]int{1, 2}) is "[1 2]". A list of bytes is a text. It is an error if v is nil, if the text
// has more than [MaxText] bytes, or if it would show a memory address.
func StringOf(v any) (string, error) {
	if IsNil(v) {
		return "", errNil
	}
	r := reflect.ValueOf(v)
	if !printsItself(r) {
		r = target(v)
	}
	if !r.IsValid() {
		return "", errNil
	}
	parts := 0
	if err := checkParts(r, &parts); err != nil {
		return "", err
	}
	var text string
	if r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8 && !printsItself(r) {
		text = string(r.Bytes())
	} else {
		text = fmt.Sprint(r.Interface())
	}
	if len(text) > MaxText {
		return "", TooLarge("string")
	}
	return text, nil
}

// IntOf returns v as an int: an integer itself, a float without its fraction, and a text as strconv.Atoi reads it. IntOf("5") is 5. It is an
// error if v is something else, or does not fit an int.
func IntOf(v any) (int, error) {
	switch r := target(v); {
	case r.CanInt():
		return To[int](r.Int())
	case r.CanUint():
		return To[int](r.Uint())
	case r.CanFloat():
		return Truncate(r.Float())
	case r.Kind() == reflect.String:
		return strconv.Atoi(r.String())
	}
	return 0, notNumber(v)
}

// FloatOf returns v as a float: a number itself, and a text as strconv.ParseFloat reads it. FloatOf("1.5") is 1.5. It is an error if v is
// something else.
func FloatOf(v any) (float64, error) {
	r := target(v)
	if f, ok := float(r); ok {
		return f, nil
	}
	if r.Kind() == reflect.String {
		return strconv.ParseFloat(r.String(), 64)
	}
	return 0, notNumber(v)
}

func notNumber(v any) error {
	if IsNil(v) {
		return errNil
	}
	return fmt.Errorf("found %T; expected a number, or a text that shows one", v)
}

// Equal reports whether v is a literal: a string, bool, int or float64. Numbers of all types are compared by value: Equal(int8(3), 3.0) is true.
// A value of a named type counts as its text, bool or number, and so does a pointer to one. A nil equals nothing.
func Equal(v, literal any) bool {
	r := target(v)
	switch literal := literal.(type) {
	case string:
		return r.Kind() == reflect.String && r.String() == literal
	case bool:
		return r.Kind() == reflect.Bool && r.Bool() == literal
	case int:
		switch {
		case r.CanInt():
			return r.Int() == int64(literal)
		case r.CanUint():
			return literal >= 0 && r.Uint() == uint64(literal)
		}
		return r.CanFloat() && r.Float() == float64(literal)
	case float64:
		f, ok := float(r)
		return ok && f == literal
	}
	return false
}

func float(r reflect.Value) (f float64, ok bool) {
	switch {
	case r.CanInt():
		return float64(r.Int()), true
	case r.CanUint():
		return float64(r.Uint()), true
	case r.CanFloat():
		return r.Float(), true
	}
	return 0, false
}

// target returns v, or what it points to. It is not valid if v or a pointer on the way is nil.
func target(v any) reflect.Value {
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer {
		r = r.Elem()
	}
	return r
}

// checkParts returns an error if fmt would print an address in r, or if r has so many parts that the text is too large. It counts the parts,
// which also ends the walk through a list that contains itself.
func checkParts(r reflect.Value, parts *int) error {
	if *parts++; *parts > MaxText {
		return TooLarge("string")
	}
	if printsItself(r) {
		return nil
	}
	check := func(parts *int, values ...reflect.Value) error {
		for _, value := range values {
			if err := checkParts(value, parts); err != nil {
				return err
			}
		}
		return nil
	}
	switch r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		if !r.IsNil() {
			return errAddress
		}
	case reflect.Interface:
		return check(parts, r.Elem())
	case reflect.Slice, reflect.Array:
		for i := range r.Len() {
			if err := check(parts, r.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for each := r.MapRange(); each.Next(); {
			if err := check(parts, each.Key(), each.Value()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for _, value := range r.Fields() {
			if err := check(parts, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// printsItself reports whether fmt prints r by calling a method of r.
func printsItself(r reflect.Value) bool {
	if !r.IsValid() || !r.CanInterface() || IsNil(r.Interface()) {
		return false
	}
	switch r.Interface().(type) {
	case fmt.Formatter, fmt.Stringer, error:
		return true
	}
	return false
}
