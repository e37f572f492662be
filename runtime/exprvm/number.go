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

var (
	errOverflow = errors.New("an integer overflows")
	errDivisor  = errors.New("the divisor is not above 0")
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

// operate applies an operator, whose name is the first argument. If an integer would overflow in expr, operate returns an error or the exact
// result.
func operate(args ...any) (any, error) {
	op, left, right := args[0].(string), plain(args[1]), plain(args[2])
	if strings.ContainsAny(op, "<>") {
		left, right = number(left), number(right)
	}
	l, r := reflect.ValueOf(left), reflect.ValueOf(right)
	if !isInt(l) || !isInt(r) {
		return operators[op](left, right), nil
	}
	compute := exact[op]
	if compute == nil {
		return compared[op][1+order(l, r)], nil
	}
	if op == "%" && exceeds(l) {
		return remainder(l, r)
	}
	a, wrong := whole(l)
	b, alsoWrong := whole(r)
	if err := cmp.Or(wrong, alsoWrong); err != nil {
		return nil, err
	}
	n, err := compute(a, b)
	switch {
	case err != nil && op == "%":
		return nil, err
	case err != nil:
		return nil, errOverflow
	case isDuration(left) || isDuration(right):
		return operators[op](left, right), nil
	}
	return machineInt(n)
}

func isDuration(v any) bool {
	_, ok := v.(time.Duration)
	return ok
}

// machineInt returns n as an int. It is an error if n does not fit, as may happen on 32-bit machines.
func machineInt(n int64) (any, error) {
	if int64(int(n)) != n {
		return nil, errOverflow
	}
	return int(n), nil
}

// equal returns l == r. Integers that are too large for an int64 are compared by their bits.
func equal(args ...any) (any, error) {
	left, right := number(args[0]), number(args[1])
	l, r := reflect.ValueOf(left), reflect.ValueOf(right)
	if isInt(l) && isInt(r) {
		return bits(l) == bits(r), nil
	}
	return runtime.Equal(left, right), nil
}

func bits(v reflect.Value) uint64 {
	if v.CanInt() {
		return uint64(v.Int())
	}
	return v.Uint()
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

// compared holds the results of the operators if the first value is less than, equal to, or greater than the second.
var compared = map[string][3]bool{"<": {true, false, false}, "<=": {true, true, false}, ">": {false, false, true}, ">=": {false, true, true}}

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

// remainder returns l % r. l may be too large for an int64: it is often a hash.
func remainder(l, r reflect.Value) (any, error) {
	by, err := whole(r)
	if err != nil {
		return nil, err
	}
	if by <= 0 {
		return nil, errDivisor
	}
	return machineInt(int64(l.Uint() % uint64(by)))
}

// opposite returns -v, of the same type.
func opposite(args ...any) (any, error) {
	v := plain(args[0])
	r := reflect.ValueOf(v)
	if !isInt(r) {
		return runtime.Negate(v), nil
	}
	n, err := whole(r)
	if err != nil {
		return nil, errOverflow
	}
	n, err = checked.Negate(n)
	if o := reflect.ValueOf(n); err == nil && keeps(o, r.Type()) {
		return o.Convert(r.Type()).Interface(), nil
	}
	return nil, errOverflow
}

// absolute returns abs(v).
func absolute(args ...any) (any, error) {
	v := plain(args[0])
	if r := reflect.ValueOf(v); r.CanInt() && r.Int() < 0 {
		return opposite(v)
	}
	return builtin.Abs(v), nil
}

// integral returns int(v).
func integral(args ...any) (any, error) {
	v, err := index(args[0])
	if err != nil {
		return nil, err
	}
	if r := reflect.ValueOf(v); r.CanFloat() && !(math.MinInt <= r.Float() && r.Float() < math.MaxInt) {
		return nil, fmt.Errorf("%v does not fit an int", v)
	}
	return builtin.Int(v), nil
}

var shiftLeft, flatten = library("bitshl"), library("flatten")

// shifted returns bitshl(v, by), or an error if a bit would be lost.
func shifted(args ...any) (any, error) {
	v, by := number(args[0]), number(args[1])
	s, err := shiftLeft(v, by)
	if err == nil && s.(int)>>uint(runtime.ToInt(by)) != runtime.ToInt(v) {
		return nil, errOverflow
	}
	return s, err
}

// index returns v as an index or a bound, or an error if the number is too large.
func index(v any) (any, error) {
	v = number(v)
	if r := reflect.ValueOf(v); isInt(r) {
		n, err := whole(r)
		if err != nil {
			return nil, err
		}
		return machineInt(n)
	}
	return v, nil
}

// extreme returns the function min or max: a later number replaces the best one so far if "best op number" is true.
func extreme(op string) func(args ...any) (any, error) {
	return func(args ...any) (best any, err error) {
		all, err := flatten(args)
		if err != nil {
			return nil, err
		}
		for _, v := range all.([]any) {
			v = plain(v)
			if r := reflect.ValueOf(v); !isInt(r) && !r.CanFloat() {
				return nil, fmt.Errorf("expected numbers, found %T", v)
			}
			if best == nil {
				best = v
				continue
			}
			if beaten, _ := operate(op, best, v); beaten == true { // comparing numbers gives no error
				best = v
			}
		}
		return best, nil
	}
}

// within reports whether the first argument is in a range, without making a list of the range.
func within(args ...any) (any, error) {
	v := number(args[0])
	low, wrong := index(args[1])
	high, alsoWrong := index(args[2])
	if err := cmp.Or(wrong, alsoWrong); err != nil {
		return nil, err
	}
	r := reflect.ValueOf(v)
	if !isInt(r) && !(r.CanFloat() && r.Float() == math.Trunc(r.Float())) {
		return false, nil
	}
	if least, _ := operate("<=", low, v); least == false {
		return false, nil
	}
	return operate("<=", v, high)
}
