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
	switch v = target(v); v.(type) {
	case nil, string, bool, int, int64, float64, time.Duration:
		return v
	}
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer && r.IsNil() {
		return nil
	}
	if to := basics[r.Kind()]; to != nil {
		return r.Convert(to).Interface()
	}
	return v
}

// number returns plain(v), and for a duration its integer. It is used where no time is involved.
func number(v any) any {
	v = plain(v)
	if d, ok := v.(time.Duration); ok {
		return int64(d)
	}
	return v
}

// target returns what a pointer points to, without changing its type. If that is a struct, a list or a map, it returns the pointer.
func target(v any) any {
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer && !r.IsNil() {
		if r = r.Elem(); basics[r.Kind()] != nil {
			return r.Interface()
		}
	}
	return v
}

// list returns v in the form that functions need: a number, or a list of plain elements.
func list(v any) any {
	switch v.(type) {
	case []int, []float64, []string:
		return v
	}
	r := reflect.Indirect(reflect.ValueOf(v))
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return number(v)
	}
	all := make([]any, r.Len())
	for i := range all {
		all[i] = plain(r.Index(i).Interface())
	}
	return all
}

// in reports whether the first argument is in a list or a map.
func in(args ...any) any {
	needle, hay := number(args[0]), reflect.Indirect(reflect.ValueOf(args[1]))
	switch hay.Kind() {
	case reflect.Map:
		return needle != nil && entry(hay, args[0]).IsValid()
	case reflect.Slice, reflect.Array:
		for i := range hay.Len() {
			if equal(hay.Index(i).Interface(), needle) == true {
				return true
			}
		}
		return false
	case reflect.Invalid:
		return false
	}
	return runtime.In(needle, args[1])
}

// entry returns the value of m for a key. The key may have another type than the keys of m, if its value is the same in both.
func entry(m reflect.Value, key any) reflect.Value {
	return m.MapIndex(must(convert(target(key), m.Type().Key())))
}

// at returns a field, a method or an element of the first argument.
func (p *Program) at(args ...any) any {
	base, name := args[0], args[1]
	r := reflect.ValueOf(base)
	if !r.IsValid() || runtime.IsNil(base) && (r.Kind() == reflect.Pointer || isMethod(r, name)) {
		panic(fmt.Errorf("%v of nil", name))
	}
	if word, ok := name.(string); ok {
		if see := p.hidden[hiddenName{r.Type(), word}]; see != nil {
			return see(base)
		}
	}
	if m := reflect.Indirect(r); m.Kind() == reflect.Map && (r.NumMethod() == 0 || !isMethod(r, name)) {
		return element(m, name)
	}
	return runtime.Fetch(base, index(name))
}

var getBuiltin = library("get")

// look implements expr's function get: it returns an element of a list or a map, or nil if there is none.
func look(args ...any) any {
	m := reflect.Indirect(reflect.ValueOf(args[0]))
	if m.Kind() != reflect.Map {
		return getBuiltin(args[0], plain(args[1]))
	}
	if key, err := convert(target(args[1]), m.Type().Key()); err == nil {
		if v := m.MapIndex(key); v.IsValid() {
			return v.Interface()
		}
	}
	return nil
}

func isMethod(r reflect.Value, name any) bool {
	word, ok := name.(string)
	return ok && r.MethodByName(word).IsValid()
}

// element returns the value of a map for a key, or the zero value if there is none.
func element(m reflect.Value, key any) any {
	if v := entry(m, key); v.IsValid() {
		return v.Interface()
	}
	return reflect.Zero(m.Type().Elem()).Interface()
}

// hold returns nil if its argument is nil, and otherwise a list that holds the argument.
func hold(args ...any) any {
	if runtime.IsNil(args[0]) {
		return nil
	}
	return []any{args[0]}
}

// held returns the value in a list of hold. It replaces a pointer by what it points to, unless that is a struct, a list or a map, or the
// pointer has methods of its own.
func held(args ...any) any {
	if args[0] == nil {
		return nil
	}
	v := args[0].([]any)[0]
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.Type().NumMethod() == r.Type().Elem().NumMethod() {
		return target(v)
	}
	return v
}
