package exprvm

import (
	"errors"
	"fmt"
	"reflect"
)

var errorType = reflect.TypeFor[error]()

// call calls its first argument with the others. The second one is the evaluation.
func call(args ...any) any {
	id, isIdentity := args[0].(identity)
	if isIdentity {
		args[0] = id.find
	}
	fn := reflect.ValueOf(args[0])
	if fn.Kind() != reflect.Func {
		panic(fmt.Errorf("%T cannot be called", args[0]))
	}
	if fn.IsNil() {
		panic(errors.New("a function is nil"))
	}
	e, t, args := args[1].(*evaluation), fn.Type(), args[2:]
	fixed := t.NumIn()
	if t.IsVariadic() {
		fixed--
	}
	if len(args) < fixed || len(args) > fixed && !t.IsVariadic() {
		panic(fmt.Errorf("%d arguments for %s", len(args), t))
	}
	in := make([]reflect.Value, len(args))
	for i, arg := range args {
		to := t.In(min(i, t.NumIn()-1))
		if i >= fixed {
			to = to.Elem()
		}
		var err error
		if in[i], err = convert(arg, to); err != nil {
			panic(fmt.Errorf("argument %d: %w", i+1, err))
		}
	}
	out := result(fn.Call(in))
	if isIdentity && out == "" {
		e.missing = id.what
		return e.assumed
	}
	return out
}

func result(out []reflect.Value) any {
	switch {
	case len(out) == 1:
		return out[0].Interface()
	case len(out) == 2 && out[1].Type() == errorType:
		err, _ := out[1].Interface().(error)
		return must(out[0].Interface(), err)
	}
	panic(fmt.Errorf("a function returns %d values; expected one, or one and an error", len(out)))
}

// convert returns v as a value of type to. It is an error if that changes more than the type.
func convert(v any, to reflect.Type) (reflect.Value, error) {
	r := reflect.ValueOf(v)
	switch {
	case !r.IsValid():
		switch to.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
			return reflect.Zero(to), nil
		}
	case r.Type().AssignableTo(to):
		return r, nil
	case r.Kind() == reflect.Pointer && !r.IsNil():
		return convert(r.Elem().Interface(), to)
	case to.Kind() == reflect.Pointer && r.Type() == to.Elem():
		pointer := reflect.New(r.Type())
		pointer.Elem().Set(r)
		return pointer, nil
	case r.Kind() == reflect.Slice && to.Kind() == reflect.Slice:
		return convertAll(r, to)
	case keeps(r, to):
		return r.Convert(to), nil
	}
	return reflect.Value{}, fmt.Errorf("found %T, expected %s", v, to)
}

func convertAll(r reflect.Value, to reflect.Type) (reflect.Value, error) {
	all := reflect.MakeSlice(to, r.Len(), r.Len())
	for i := range r.Len() {
		v, err := convert(r.Index(i).Interface(), to.Elem())
		if err != nil {
			return v, err
		}
		all.Index(i).Set(v)
	}
	return all, nil
}

// keeps reports whether a value stays the same when it is converted to type to.
func keeps(r reflect.Value, to reflect.Type) bool {
	zero := reflect.Zero(to)
	switch {
	case isInt(r) && isInt(zero):
		return order(r, r.Convert(to)) == 0
	case r.CanInt(), r.CanUint(), r.CanFloat():
		return zero.CanFloat()
	}
	return r.Kind() == to.Kind() && basics[to.Kind()] != nil
}
