package exprvm

import (
	"fmt"
	"reflect"
	"time"

	"github.com/expr-lang/expr/vm/runtime"
)

// basics are Go's predeclared types, to which values of named types are converted.
var basics = func() map[reflect.Kind]reflect.Type {
	m := map[reflect.Kind]reflect.Type{}
	for _, v := range []any{
		false, "", 0, int8(0), int16(0), int32(0), int64(0), uint(0), uint8(0), uint16(0), uint32(0), uint64(0), float32(0), 0.0,
	} {
		m[reflect.TypeOf(v).Kind()] = reflect.TypeOf(v)
	}
	return m
}()

// plain returns v in the form that operators need. A value of a named type becomes one of a predeclared type. A pointer becomes what it points
// to, unless that is a struct, a list or a map.
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

// number returns plain(v), and for a duration its integer. It is used where no time is involved.
func number(v any) any {
	v = plain(v)
	if d, ok := v.(time.Duration); ok {
		return int64(d)
	}
	return v
}

// value returns what a pointer points to, without changing its type. If that is a struct, a list or a map, it returns the pointer.
func value(args ...any) (any, error) {
	r := reflect.ValueOf(args[0])
	for r.Kind() == reflect.Pointer && !r.IsNil() {
		if r = r.Elem(); basics[r.Kind()] != nil {
			return r.Interface(), nil
		}
	}
	return args[0], nil
}

// list returns v in the form that functions on lists need: with plain elements.
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

// in reports whether the first argument is in a list or a map.
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

// entry returns the value of m for a key. The key may have another type than the keys of m, if its value is the same in both.
func entry(m reflect.Value, key any) (reflect.Value, error) {
	key, _ = value(key)
	k, err := convert(key, m.Type().Key())
	if err != nil {
		return k, err
	}
	return m.MapIndex(k), nil
}

// at returns a field, a method or an element of the first argument.
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

// look implements expr's function get: it returns an element of a list or a map, or nil if there is none.
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

// element returns the value of a map for a key, or the zero value if there is none.
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

// hold returns nil if its argument is nil, and otherwise a list that holds the argument.
func hold(args ...any) (any, error) {
	if runtime.IsNil(args[0]) {
		return nil, nil
	}
	return []any{args[0]}, nil
}

// held returns the value in a list of hold. It replaces a pointer by what it points to, unless that is a struct, a list or a map, or the
// pointer has methods of its own.
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
