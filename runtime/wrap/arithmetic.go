package wrap

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/decide"
)

// Integer is any integer type.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Number is any type of integers or floats.
type Number interface {
	Integer | ~float32 | ~float64
}

// Add returns a + b: Add(2, 3) is 5. It is an error if the sum overflows.
func Add[N ~int | ~int64](a, b N) (N, error) {
	if sum := a + b; (sum > a) == (b > 0) {
		return sum, nil
	}
	return 0, fmt.Errorf("%d + %d overflows", a, b)
}

// Subtract returns a - b: Subtract(2, 3) is -1. It is an error if the difference overflows.
func Subtract[N ~int | ~int64](a, b N) (N, error) {
	if difference := a - b; (difference < a) == (b > 0) {
		return difference, nil
	}
	return 0, fmt.Errorf("%d - %d overflows", a, b)
}

// Multiply returns a * b: Multiply(2, 3) is 6. It is an error if the product overflows.
func Multiply[N ~int | ~int64](a, b N) (N, error) {
	if a == 0 || b == 0 {
		return 0, nil
	}
	if product := a * b; (product < 0) == ((a < 0) != (b < 0)) && product/b == a {
		return product, nil
	}
	return 0, fmt.Errorf("%d * %d overflows", a, b)
}

// Remainder returns a % b, which has the sign of a: Remainder(-7, 3) is -1. It is an error if b is 0.
func Remainder[N Integer](a, b N) (N, error) {
	if b == 0 {
		return 0, errors.New("division by zero")
	}
	return a % b, nil
}

// Negate returns -n: Negate(2) is -2. It is an error if n is the smallest value of its type, or an unsigned integer above 0.
func Negate[N Integer](n N) (N, error) {
	if opposite := -n; n == 0 || (opposite < 0) != (n < 0) {
		return opposite, nil
	}
	return 0, fmt.Errorf("the opposite of %d overflows", n)
}

// Abs returns n without its sign: Abs(-2) is 2. It is an error if n is the smallest value of its type.
func Abs[N Integer](n N) (N, error) {
	if n < 0 {
		return Negate(n)
	}
	return n, nil
}

// To returns n as an integer of another type: To[int8](100) is 100. It is an error if n does not fit: To[int8](200).
func To[T, N Integer](n N) (T, error) {
	if t := T(n); N(t) == n && (t < 0) == (n < 0) {
		return t, nil
	}
	return 0, fmt.Errorf("%d does not fit %T", n, T(0))
}

// Truncate returns f without its fraction: Truncate(-2.7) is -2. It is an error if f is NaN, or does not fit an int.
func Truncate(f float64) (int, error) {
	if whole := math.Trunc(f); math.MinInt <= whole && whole < -math.MinInt {
		return int(whole), nil
	}
	return 0, fmt.Errorf("%v does not fit int", f)
}

// RoundUp returns the smallest amount that is at least f: RoundUp(2.1) is 3. What is within 10^-12 of an integer,
// relative to f, or within 10^-9 below 1, is that integer: RoundUp(2.0000000000001) is 2. It is an error unless f is from 0 to 2^63-1.
func RoundUp(f float64) (int64, error) { return amount(f, math.Ceil) }

// RoundDown returns the largest amount that is at most f: RoundDown(2.9) is 2, and RoundDown(2.9999999999999) is 3. A limit of -1, which is
// [ratelimit.NoLimit], stays -1. The errors are those of [RoundUp].
func RoundDown(f float64) (int64, error) {
	if f == decide.NoLimit {
		return decide.NoLimit, nil
	}
	return amount(f, math.Floor)
}

func amount(f float64, round func(float64) float64) (int64, error) {
	if near := decide.Near(f); 0 <= near && near < 1<<63 {
		return int64(round(near)), nil
	}
	return 0, fmt.Errorf("found %v; expected a number from 0 to 2^63-1", f)
}

// Compare returns -1, 0 or 1 if a is less than, equal to or greater than b, whatever their types: Compare(-1, uint(1)) is -1.
func Compare[A, B Integer](a A, b B) int {
	switch {
	case a < 0 && b < 0:
		return cmp.Compare(int64(a), int64(b))
	case a < 0:
		return -1
	case b < 0:
		return 1
	}
	return cmp.Compare(uint64(a), uint64(b))
}

// ShiftLeft returns n << by: ShiftLeft(3, 2) is 12. It is an error if by is negative, or if a bit would be lost.
func ShiftLeft(n, by int) (int, error) {
	if by < 0 {
		return 0, negativeShift(by)
	}
	if shifted := n << by; shifted>>by == n {
		return shifted, nil
	}
	return 0, fmt.Errorf("bitshl(%d, %d) overflows", n, by)
}

// ShiftRight returns n >> by, which has the sign of n: ShiftRight(-12, 2) is -3. It is an error if by is negative.
func ShiftRight(n, by int) (int, error) {
	if by < 0 {
		return 0, negativeShift(by)
	}
	return n >> by, nil
}

// ShiftRightUnsigned returns n >> by with zeros from the left: ShiftRightUnsigned(-1, 60) is 15 on machines of 64 bits. It is an error if by is
// negative.
func ShiftRightUnsigned(n, by int) (int, error) {
	if by < 0 {
		return 0, negativeShift(by)
	}
	return int(uint(n) >> by), nil
}

func negativeShift(by int) error {
	return fmt.Errorf("found a shift by %d bits; expected 0 or more", by)
}

// Sum returns the sum of a list: Sum([]int8{100, 100}) is 200. It is an error if a sum on the way does not fit an int.
func Sum[N Integer](list []N) (int, error) { return SumBy(list, same[N]) }

// SumBy returns the sum of a number of each element. It is an error if a sum on the way does not fit an int.
func SumBy[E any, N Integer](list []E, number func(E) N) (sum int, err error) {
	for _, each := range list {
		n, err := To[int](number(each))
		if err != nil {
			return 0, err
		}
		if sum, err = Add(n, sum); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

// SumFloats returns the sum of a list as a float: SumFloats([]float32{0.5, 2}) is 2.5.
func SumFloats[N Number](list []N) float64 { return SumFloatsBy(list, same[N]) }

// SumFloatsBy returns the sum of a number of each element as a float.
func SumFloatsBy[E any, N Number](list []E, number func(E) N) (sum float64) {
	for _, each := range list {
		sum += float64(number(each))
	}
	return sum
}

func same[N any](n N) N { return n }

// Mean returns the average of a list: Mean([]float64{1, 2, 6}) is 3. That of an empty list is 0.
func Mean(list []float64) float64 { return SumFloats(list) / float64(max(1, len(list))) }

// Median returns the number in the middle of a sorted list, or the mean of the two there: Median([]float64{9, 1, 2}) is 2. That of an empty
// list is 0.
func Median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	switch n := len(sorted); {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}

var errEmpty = errors.New("found an empty list; expected at least one element")

// Min returns the smallest element of a list, or NaN if there is one: Min([]int{2, 1}) is 1. It is an error if the list is empty.
func Min[N cmp.Ordered](list []N) (least N, err error) {
	if len(list) == 0 {
		return least, errEmpty
	}
	return slices.Min(list), nil
}

// Max returns the largest element of a list, or NaN if there is one: Max([]int{2, 1}) is 2. It is an error if the list is empty.
func Max[N cmp.Ordered](list []N) (most N, err error) {
	if len(list) == 0 {
		return most, errEmpty
	}
	return slices.Max(list), nil
}
