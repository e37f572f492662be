package wrap

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

var (
	errNil     = errors.New("the value is nil")
	errAddress = errors.New("a text would show an address, which differs from call to call")
)

// TextOf returns v as a text for a key: by its method MarshalText, or else by its method String, or else by its kind. TextOf(int8(5)) is "5". A
// time is in UTC, so equal times have one text. It is an error if v is nil, or if it has no such method and is no text, bool or integer.
func TextOf(v any) (string, error) {
	if IsNil(v) {
		return "", errNil
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case time.Time:
		text, err := v.UTC().MarshalText()
		return string(text), err
	case *time.Time:
		return TextOf(*v)
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

// StringOf returns what fmt prints for v: StringOf([]int{1, 2}) is "[1 2]". A list of bytes is a text. It is an error if v is nil or a nil
// pointer, if the text has more than [MaxText] bytes, or if it would show a memory address.
func StringOf(v any) (string, error) {
	var w walk
	r := reflect.ValueOf(v)
	if !w.isMethod(r) {
		r = target(v)
	}
	if !r.IsValid() {
		return "", errNil
	}
	if w.visit(r); w.err != nil {
		return "", w.err
	}
	text := ""
	if r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8 && !w.isMethod(r) {
		text = string(r.Bytes())
	} else {
		text = fmt.Sprint(r.Interface())
	}
	if len(text) > MaxText {
		return "", tooLarge("string")
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

// Equal reports whether v is a string, bool, int, int64 or float64. Numbers of all types are compared by value: Equal(int8(3), 3.0) is true.
// A value of a named type counts as its text, bool or number, and so does a pointer to one. A nil equals nothing.
func Equal(v, basic any) bool {
	r := target(v)
	switch basic := basic.(type) {
	case string:
		return r.Kind() == reflect.String && r.String() == basic
	case bool:
		return r.Kind() == reflect.Bool && r.Bool() == basic
	case int:
		return Equal(v, int64(basic))
	case int64:
		return r.CanInt() && r.Int() == basic || r.CanUint() && basic >= 0 && r.Uint() == uint64(basic) ||
			r.CanFloat() && r.Float() == float64(basic)
	case float64:
		f, ok := float(r)
		return ok && f == basic
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
	for r.Kind() == reflect.Pointer || r.Kind() == reflect.Interface {
		r = r.Elem()
	}
	return r
}

// walk finds out what is wrong with a value that becomes a text, before the text is made: an address, or far more bytes than a text may have.
// For example, a list may hold the same text many times.
type walk struct {
	isJSON bool // otherwise fmt prints the value
	depth  int  // of the lists, maps and structs around a part
	size   int  // about how many bytes indented JSON has; the depth in it also ends the walk through a list that contains itself
	err    error
}

func (w *walk) visit(r reflect.Value) {
	if r.Kind() == reflect.Interface {
		r = r.Elem()
	}
	if w.size += 1 + 2*w.depth; w.size > maxWork {
		w.err = errWork
	}
	if w.err != nil || w.isMethod(r) {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	switch r.Kind() {
	case reflect.String:
		w.size += r.Len()
	case reflect.Pointer, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		switch {
		case w.isJSON && r.Kind() == reflect.Pointer:
			w.visit(r.Elem())
		case !w.isJSON && !r.IsNil():
			w.err = errAddress
		}
	case reflect.Slice, reflect.Array:
		for i := range r.Len() {
			w.visit(r.Index(i))
		}
	case reflect.Map:
		for each := r.MapRange(); each.Next(); {
			w.visit(each.Key())
			w.visit(each.Value())
		}
	case reflect.Struct:
		for field, value := range r.Fields() {
			if field.IsExported() || !w.isJSON {
				w.visit(value)
			}
		}
	}
}

// isMethod reports whether a method of r makes its text.
func (w *walk) isMethod(r reflect.Value) bool {
	if !r.IsValid() || !r.CanInterface() || r.NumMethod() == 0 || IsNil(r.Interface()) {
		return false
	}
	v := r.Interface()
	if w.isJSON {
		return is[json.Marshaler](v) || is[encoding.TextMarshaler](v)
	}
	return is[fmt.Formatter](v) || is[fmt.Stringer](v) || is[error](v)
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}
