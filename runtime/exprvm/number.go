package exprvm

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/ratelimit-go/ratelimit/runtime/exprvm/checked"
)

// operators are expr's own operators. They are used unless both operands are integers.
var operators = map[string]func(l, r any) any{
	"+": runtime.Add, "-": runtime.Subtract, "*": runtime.Multiply,
	"%":  func(l, r any) any { return runtime.Modulo(l, r) },
	"<":  func(l, r any) any { return runtime.Less(l, r) },
	"<=": func(l, r any) any { return runtime.LessOrEqual(l, r) },
	">":  func(l, r any) any { return runtime.More(l, r) },
	">=": func(l, r any) any { return runtime.MoreOrEqual(l, r) },
}

// exact are the operators on integers. Expr would convert the operands to int first, which changes them on 32-bit machines.
var exact = map[string]func(a, b int64) (int64, error){
	"+": checked.Add[int64], "-": checked.Subtract[int64], "*": checked.Multiply[int64], "%": checked.Remainder[int64],
}

// operate applies an operator, whose name is the first argument. If an integer would overflow in expr, the result is exact, or it is an error.
func operate(args ...any) any {
	op, left, right := args[0].(string), plain(args[1]), plain(args[2])
	isOrder := strings.ContainsAny(op, "<>")
	if isOrder {
		left, right = number(left), number(right)
	}
	l, r := reflect.ValueOf(left), reflect.ValueOf(right)
	switch {
	case !isInt(l) || !isInt(r):
		return operators[op](left, right)
	case isOrder:
		return operators[op](order(l, r), 0)
	case op == "%" && exceeds(l):
		return remainder(l, r)
	}
	n := must(exact[op](must(whole(l)), must(whole(r))))
	if isDuration(left) || isDuration(right) {
		return operators[op](left, right)
	}
	return must(checked.To[int](n))
}

func isDuration(v any) bool {
	_, ok := v.(time.Duration)
	return ok
}

func isInt(v reflect.Value) bool { return v.CanInt() || v.CanUint() && v.Kind() != reflect.Uintptr }

// exceeds reports whether an integer is too large for an int64.
func exceeds(v reflect.Value) bool { return v.CanUint() && v.Uint() > math.MaxInt64 }

// whole returns an integer as an int64, or an error if it is too large.
func whole(v reflect.Value) (int64, error) {
	if exceeds(v) {
		return 0, fmt.Errorf("%d does not fit an int", v.Uint())
	}
	return int64(bits(v)), nil
}

func bits(v reflect.Value) uint64 {
	if v.CanInt() {
		return uint64(v.Int())
	}
	return v.Uint()
}

// order returns a number below, at or above 0 if l is less than, equal to or greater than r.
func order(l, r reflect.Value) int {
	switch {
	case exceeds(l) && !exceeds(r):
		return 1
	case exceeds(r) && !exceeds(l):
		return -1
	}
	return cmp.Compare(int64(bits(l)), int64(bits(r)))
}

// remainder returns l % r for an l that is too large for an int64, as a hash may be.
func remainder(l, r reflect.Value) any {
	by := must(whole(r))
	if by <= 0 {
		panic(errors.New("the divisor is not above 0"))
	}
	return must(checked.To[int](l.Uint() % uint64(by)))
}

// equal returns l == r. Integers that are too large for an int64 are compared by their bits.
func equal(args ...any) any {
	left, right := number(args[0]), number(args[1])
	if l, r := reflect.ValueOf(left), reflect.ValueOf(right); isInt(l) && isInt(r) {
		return bits(l) == bits(r)
	}
	return runtime.Equal(left, right)
}

// opposite returns -v, of the same type.
func opposite(args ...any) any {
	v := plain(args[0])
	r := reflect.ValueOf(v)
	if !isInt(r) {
		return runtime.Negate(v)
	}
	n := reflect.ValueOf(must(checked.Negate(must(whole(r)))))
	if !keeps(n, r.Type()) {
		panic(fmt.Errorf("the opposite of %v overflows", v))
	}
	return n.Convert(r.Type()).Interface()
}

// absolute returns abs(v).
func absolute(args ...any) any {
	v := plain(args[0])
	if r := reflect.ValueOf(v); r.CanInt() && r.Int() < 0 {
		return opposite(v)
	}
	return builtin.Abs(v)
}

// integral returns int(v).
func integral(args ...any) any {
	v := index(args[0])
	if r := reflect.ValueOf(v); r.CanFloat() && !(math.MinInt <= r.Float() && r.Float() < math.MaxInt) {
		panic(fmt.Errorf("%v does not fit an int", v))
	}
	return builtin.Int(v)
}

var shiftLeft, flatten = library("bitshl"), library("flatten")

// shifted returns bitshl(v, by). It is an error if a bit would be lost.
func shifted(args ...any) any {
	v, by := number(args[0]), number(args[1])
	s := shiftLeft(v, by)
	if s.(int)>>uint(runtime.ToInt(by)) != runtime.ToInt(v) {
		panic(fmt.Errorf("bitshl(%v, %v) overflows", v, by))
	}
	return s
}

// index returns v as an index or a bound. It is an error if the number is too large.
func index(v any) any {
	v = number(v)
	if r := reflect.ValueOf(v); isInt(r) {
		return must(checked.To[int](must(whole(r))))
	}
	return v
}

// extreme returns the function min or max: a later number replaces the best one so far if "best op number" is true.
func extreme(op string) function {
	return func(args ...any) (best any) {
		for _, v := range flatten(args).([]any) {
			v = plain(v)
			if r := reflect.ValueOf(v); !isInt(r) && !r.CanFloat() {
				panic(fmt.Errorf("expected numbers, found %T", v))
			}
			if best == nil || operate(op, best, v) == true {
				best = v
			}
		}
		return best
	}
}

// within reports whether the first argument is in a range, without making a list of the range.
func within(args ...any) any {
	v, low, high := number(args[0]), index(args[1]), index(args[2])
	r := reflect.ValueOf(v)
	isWhole := isInt(r) || r.CanFloat() && r.Float() == math.Trunc(r.Float())
	return isWhole && operate("<=", low, v) == true && operate("<=", v, high) == true
}
