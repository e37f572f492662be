package wrap_test

// fault is a function of a user, in a file of its own, that dereferences nil.
func fault() string {
	var none *owner
	return none.name
}

func faultyIndex(numbers []int) string { return string(rune(numbers[3])) }
