// Package checked has arithmetic on integers that returns an error if a result does not fit its type, and functions on texts that return an
// error if the text or the result is too large. Generated code calls it if an expression of a directive needs them. The package does not import
// expr.
package checked

import (
	"errors"
	"fmt"
)

// Integer is any integer type.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Add returns a + b.
func Add[N ~int | ~int64](a, b N) (N, error) {
	if sum := a + b; (sum > a) == (b > 0) {
		return sum, nil
	}
	return 0, fmt.Errorf("%d + %d overflows", a, b)
}

// Subtract returns a - b.
func Subtract[N ~int | ~int64](a, b N) (N, error) {
	if difference := a - b; (difference < a) == (b > 0) {
		return difference, nil
	}
	return 0, fmt.Errorf("%d - %d overflows", a, b)
}

// Multiply returns a * b.
func Multiply[N ~int | ~int64](a, b N) (N, error) {
	if a == 0 || b == 0 {
		return 0, nil
	}
	if product := a * b; (product < 0) == ((a < 0) != (b < 0)) && product/b == a {
		return product, nil
	}
	return 0, fmt.Errorf("%d * %d overflows", a, b)
}

// Remainder returns a % b, which has the sign of a.
func Remainder[N ~int | ~int64](a, b N) (N, error) {
	if b == 0 {
		return 0, errors.New("division by zero")
	}
	return a % b, nil
}

// Negate returns -n. It is an error if n is the smallest value of its type, or an unsigned integer above 0.
func Negate[N Integer](n N) (N, error) {
	if opposite := -n; n == 0 || (opposite < 0) != (n < 0) {
		return opposite, nil
	}
	return 0, fmt.Errorf("the opposite of %d overflows", n)
}

// To returns n as an integer of another type.
func To[T, N Integer](n N) (T, error) {
	if t := T(n); N(t) == n && (t < 0) == (n < 0) {
		return t, nil
	}
	return 0, fmt.Errorf("%d does not fit %T", n, T(0))
}
