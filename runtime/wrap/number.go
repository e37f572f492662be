package wrap

// Add returns a + b, and false if that overflows.
func Add[N ~int | ~int64](a, b N) (sum N, ok bool) {
	sum = a + b
	return sum, (sum > a) == (b > 0)
}

// Subtract returns a - b, and false if that overflows.
func Subtract[N ~int | ~int64](a, b N) (difference N, ok bool) {
	difference = a - b
	return difference, (difference < a) == (b > 0)
}

// Multiply returns a * b, and false if that overflows.
func Multiply[N ~int | ~int64](a, b N) (product N, ok bool) {
	product = a * b
	if a == 0 || b == 0 {
		return 0, true
	}
	return product, product/b == a && (product < 0) == ((a < 0) != (b < 0))
}
