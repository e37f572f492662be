package wrap

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// MaxList is how many integers a range has at most.
const MaxList = 1 << 16

// At returns an element. A negative index counts from the end: At(list, -1) is the last element. It is an error if there is none at the index.
func At[E any](list []E, i int) (each E, err error) {
	if there := Get(list, i); there != nil {
		return *there, nil
	}
	return each, fmt.Errorf("found index %d in a list of %d elements", i, len(list))
}

// Get returns a pointer to what [At] returns, or nil if there is no element at the index.
func Get[E any](list []E, i int) *E {
	if i < 0 {
		i += len(list)
	}
	if uint(i) < uint(len(list)) {
		return &list[i]
	}
	return nil
}

// First returns a pointer to the first element, or nil if the list is empty.
func First[E any](list []E) *E { return Get(list, 0) }

// Last returns a pointer to the last element, or nil if the list is empty.
func Last[E any](list []E) *E { return Get(list, -1) }

// Slice returns the elements from an index to the one before another. Negative indices count from the end, and those outside the list are its
// bounds: Slice([]int{5, 6, 7}, -2, 9) is [6 7].
func Slice[E any](list []E, from, to int) []E {
	from, to = bounds(len(list), from, to)
	return list[from:to]
}

// SliceText is [Slice] for the bytes of a text: SliceText("admin", 0, 2) is "ad".
func SliceText(text string, from, to int) string {
	from, to = bounds(len(text), from, to)
	return text[from:to]
}

func bounds(length, from, to int) (int, int) {
	if from < 0 {
		from += length
	}
	if to < 0 {
		to += length
	}
	to = max(0, min(to, length))
	return max(0, min(from, to)), to
}

// FirstN returns the first n elements, or all if there are fewer: FirstN([]int{5, 6, 7}, 2) is [5 6]. It is an error if n is negative.
func FirstN[E any](list []E, n int) ([]E, error) {
	if n < 0 {
		return nil, fmt.Errorf("found a count of %d; expected 0 or more", n)
	}
	return list[:min(n, len(list))], nil
}

// Reverse returns a list in the opposite order: Reverse([]int{5, 6}) is [6 5]. The list itself does not change.
func Reverse[E any](list []E) []E {
	reversed := append([]E{}, list...)
	slices.Reverse(reversed)
	return reversed
}

// Uniq returns the elements without repetitions: Uniq([]int{5, 6, 5}) is [5 6].
func Uniq[E comparable](list []E) []E {
	seen := make(map[E]bool, len(list))
	return Filter(list, func(each E) bool {
		again := seen[each]
		seen[each] = true
		return !again
	})
}

// Sort returns the elements in order: Sort([]int{2, 3, 1}, "desc") is [3 2 1]. It is an error if the order is not "asc" or "desc".
func Sort[E cmp.Ordered](list []E, order string) ([]E, error) {
	sorted := append([]E{}, list...)
	slices.Sort(sorted)
	if order == "desc" {
		slices.Reverse(sorted)
	}
	return sorted, checkOrder(order)
}

// SortBy returns the elements in the order of their keys. Elements with the same key keep their order. It is an error if the order is not "asc"
// or "desc".
func SortBy[E any, K cmp.Ordered](list []E, key func(E) K, order string) ([]E, error) {
	return sortBy(list, key, cmp.Compare[K], order)
}

// SortByTime is [SortBy] for keys that are times.
func SortByTime[E any](list []E, key func(E) time.Time, order string) ([]E, error) {
	return sortBy(list, key, time.Time.Compare, order)
}

// sortBy calls key once for each element.
func sortBy[E, K any](list []E, key func(E) K, compare func(a, b K) int, order string) ([]E, error) {
	type keyed struct {
		key  K
		each E
	}
	sorted := Map(list, func(_ int, each E) keyed { return keyed{key(each), each} })
	slices.SortStableFunc(sorted, func(a, b keyed) int {
		if order == "desc" {
			a, b = b, a
		}
		return compare(a.key, b.key)
	})
	return Map(sorted, func(_ int, k keyed) E { return k.each }), checkOrder(order)
}

func checkOrder(order string) error {
	if order == "asc" || order == "desc" {
		return nil
	}
	return fmt.Errorf("found the order %q; expected asc or desc", order)
}

// All reports whether is(each) is true for all elements.
func All[E any](list []E, is func(E) bool) bool {
	return !slices.ContainsFunc(list, func(each E) bool { return !is(each) })
}

// Any reports whether is(each) is true for an element.
func Any[E any](list []E, is func(E) bool) bool { return slices.ContainsFunc(list, is) }

// None reports whether is(each) is true for no element.
func None[E any](list []E, is func(E) bool) bool { return !slices.ContainsFunc(list, is) }

// One reports whether is(each) is true for exactly one element.
func One[E any](list []E, is func(E) bool) bool { return Count(list, is) == 1 }

// Count returns for how many elements is(each) is true.
func Count[E any](list []E, is func(E) bool) (n int) {
	for _, each := range list {
		if is(each) {
			n++
		}
	}
	return n
}

// CountTrue returns how many elements are true: CountTrue([]bool{true, false, true}) is 2.
func CountTrue[B ~bool](list []B) int { return Count(list, func(b B) bool { return bool(b) }) }

// Filter returns the elements for which is(each) is true.
func Filter[E any](list []E, is func(E) bool) []E {
	kept := []E{}
	for _, each := range list {
		if is(each) {
			kept = append(kept, each)
		}
	}
	return kept
}

// Find returns a pointer to the first element for which is(each) is true, or nil if there is none.
func Find[E any](list []E, is func(E) bool) *E { return found(list, slices.IndexFunc(list, is)) }

// FindLast returns a pointer to the last element for which is(each) is true, or nil if there is none.
func FindLast[E any](list []E, is func(E) bool) *E { return found(list, lastIndex(list, is)) }

// FindIndex returns the index of what [Find] finds, or nil.
func FindIndex[E any](list []E, is func(E) bool) *int { return index(slices.IndexFunc(list, is)) }

// FindLastIndex returns the index of what [FindLast] finds, or nil.
func FindLastIndex[E any](list []E, is func(E) bool) *int { return index(lastIndex(list, is)) }

func lastIndex[E any](list []E, is func(E) bool) int {
	for i, each := range slices.Backward(list) {
		if is(each) {
			return i
		}
	}
	return -1
}

func found[E any](list []E, i int) *E {
	if i < 0 {
		return nil
	}
	return &list[i]
}

func index(i int) *int {
	if i < 0 {
		return nil
	}
	return &i
}

// Map returns the list of the results for each index and element.
func Map[E, R any](list []E, result func(i int, each E) R) []R {
	all := make([]R, len(list))
	for i, each := range list {
		all[i] = result(i, each)
	}
	return all
}

// Reduce calls step for each index and element, with the result of the step before, or first. It returns the last result.
func Reduce[E, R any](list []E, first R, step func(acc R, i int, each E) R) R {
	acc := first
	for i, each := range list {
		acc = step(acc, i, each)
	}
	return acc
}

// ReduceList is [Reduce] that starts with the first element. It calls step from the index 1 on. It is an error if the list is empty.
func ReduceList[E any](list []E, step func(acc E, i int, each E) E) (acc E, err error) {
	if len(list) == 0 {
		return acc, errEmpty
	}
	acc = list[0]
	for i := 1; i < len(list); i++ {
		acc = step(acc, i, list[i])
	}
	return acc, nil
}

// GroupBy returns the elements by their keys.
func GroupBy[E any, K comparable](list []E, key func(E) K) map[K][]E {
	groups := map[K][]E{}
	for _, each := range list {
		k := key(each)
		groups[k] = append(groups[k], each)
	}
	return groups
}

// Range returns the integers from first to last: Range(2, 4) is [2 3 4]. The range is empty if last is less than first. It is an error if there
// are more than [MaxList].
func Range(first, last int) ([]int, error) {
	if last < first {
		return []int{}, nil
	}
	if uint(last)-uint(first) >= MaxList {
		return nil, fmt.Errorf("found the range %d..%d; expected at most %d integers", first, last, MaxList)
	}
	all := make([]int, last-first+1)
	for i := range all {
		all[i] = first + i
	}
	return all, nil
}
