package exprvm

import (
	"fmt"
	"reflect"
	"time"

	"github.com/expr-lang/expr/vm/runtime"
)

// basics are the types of Go's own that values of named types become.
var basics = func() map[reflect.Kind]reflect.Type {
	m := map[reflect.Kind]reflect.Type{}
	for _, v := range []any{
		false, "", 0, int8(0), int16(0), int32(0), int64(0), uint(0), uint8(0), uint16(0), uint32(0), uint64(0), float32(0), 0.0,
	} {
		m[reflect.TypeOf(v).Kind()] = reflect.TypeOf(v)
	}
	return m
}()

// plain is v as operators take it: of a type of Go's own, and for a pointer what it points to, unless that has parts.
func plain(v any) any {
	switch v.(type) {
	case nil, string, bool, int, int64, float64, time.Duration:
		return v
	}
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer {
		if r.IsNil() {
			return nil
		}
		if r = r.Elem(); basics[r.Kind()] == nil {
			return v
		}
	}
	to := basics[r.Kind()]
	if to == nil {
		return v
	}
	if d, ok := r.Interface().(time.Duration); ok {
		return d
	}
	return r.Convert(to).Interface()
}

// number is v as plain, but for a duration, which counts as the integer it is where it does not meet a time.
func number(v any) any {
	v = plain(v)
	if d, ok := v.(time.Duration); ok {
		return int64(d)
	}
	return v
}

// value is what a pointer points to, with its type, unless that has parts.
func value(args ...any) (any, error) {
	r := reflect.ValueOf(args[0])
	for r.Kind() == reflect.Pointer && !r.IsNil() {
		if r = r.Elem(); basics[r.Kind()] != nil {
			return r.Interface(), nil
		}
	}
	return args[0], nil
}

// list is v as functions take it that look at the elements of a list.
func list(v any) any {
	switch v.(type) {
	case []int, []float64, []string:
		return v
	}
	r := reflect.Indirect(reflect.ValueOf(v))
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return plain(v)
	}
	all := make([]any, r.Len())
	for i := range all {
		all[i] = plain(r.Index(i).Interface())
	}
	return all
}

// in tells whether a list or a map has the first argument.
func in(args ...any) (any, error) {
	needle, hay := number(args[0]), reflect.Indirect(reflect.ValueOf(args[1]))
	switch hay.Kind() {
	case reflect.Map:
		if needle == nil {
			return false, nil
		}
		v, err := entry(hay, args[0])
		return v.IsValid(), err
	case reflect.Slice, reflect.Array:
		for i := range hay.Len() {
			if same, _ := equal(hay.Index(i).Interface(), needle); same == true {
				return true, nil
			}
		}
		return false, nil
	case reflect.Invalid:
		return false, nil
	}
	return runtime.In(needle, args[1]), nil
}

// entry is what m has for a key, of which only the type may be another one.
func entry(m reflect.Value, key any) (reflect.Value, error) {
	key, _ = value(key)
	k, err := convert(key, m.Type().Key())
	if err != nil {
		return k, err
	}
	return m.MapIndex(k), nil
}

// at is a field, a method or an element of the first argument.
func (p *Program) at(args ...any) (any, error) {
	base, name := args[0], args[1]
	r := reflect.ValueOf(base)
	if !r.IsValid() || runtime.IsNil(base) && (r.Kind() == reflect.Pointer || isMethod(r, name)) {
		return nil, fmt.Errorf("%v of nil", name)
	}
	if word, ok := name.(string); ok {
		if see := p.hidden[hiddenName{r.Type(), word}]; see != nil {
			return see(base), nil
		}
	}
	if m := reflect.Indirect(r); m.Kind() == reflect.Map && (r.NumMethod() == 0 || !isMethod(r, name)) {
		return element(m, name)
	}
	i, err := index(name)
	if err != nil {
		return nil, err
	}
	return runtime.Fetch(base, i), nil
}

var getBuiltin = library("get")

// look is what expr calls get: an element of a list or a map, or nil if there is none.
func look(args ...any) (any, error) {
	m := reflect.Indirect(reflect.ValueOf(args[0]))
	if m.Kind() != reflect.Map {
		return getBuiltin(args[0], plain(args[1]))
	}
	if v, err := entry(m, args[1]); err == nil && v.IsValid() {
		return v.Interface(), nil
	}
	return nil, nil
}

func isMethod(r reflect.Value, name any) bool {
	word, ok := name.(string)
	return ok && r.MethodByName(word).IsValid()
}

// element is one of a map: its zero value if there is none.
func element(m reflect.Value, key any) (any, error) {
	v, err := entry(m, key)
	if err != nil {
		return nil, err
	}
	if v.IsValid() {
		return v.Interface(), nil
	}
	return reflect.Zero(m.Type().Elem()).Interface(), nil
}

// hold is nil if its argument is, else a list of it.
func hold(args ...any) (any, error) {
	if runtime.IsNil(args[0]) {
		return nil, nil
	}
	return []any{args[0]}, nil
}

// held is what hold holds, or what that points to, unless it has parts or the pointer has methods of its own.
func held(args ...any) (any, error) {
	if args[0] == nil {
		return nil, nil
	}
	v := args[0].([]any)[0]
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.Type().NumMethod() == r.Type().Elem().NumMethod() {
		return value(v)
	}
	return v, nil
}
