package wrap

import (
	"fmt"
	"maps"
	"slices"
)

// GetKey returns a pointer to a copy of the value of a key, or nil if the table does not have the key.
func GetKey[K comparable, V any](table map[K]V, key K) *V {
	if value, ok := table[key]; ok {
		return &value
	}
	return nil
}

// Has reports whether a table has a key.
func Has[K comparable, V any](table map[K]V, key K) bool {
	_, ok := table[key]
	return ok
}

// Keys returns the keys of a table, in random order.
func Keys[K comparable, V any](table map[K]V) []K {
	return slices.AppendSeq(make([]K, 0, len(table)), maps.Keys(table))
}

// Values returns the values of a table, in random order.
func Values[K comparable, V any](table map[K]V) []V {
	return slices.AppendSeq(make([]V, 0, len(table)), maps.Values(table))
}

// ToPairs returns the pairs of a key and its value, in random order: ToPairs(map[string]int{"a": 1}) is [[a 1]].
func ToPairs[K comparable, V any](table map[K]V) [][]any {
	pairs := make([][]any, 0, len(table))
	for key, value := range table {
		pairs = append(pairs, []any{key, value})
	}
	return pairs
}

// FromPairs returns the table of a list of pairs: FromPairs([][]int{{1, 2}}) is map[1:2]. The last pair of a key counts. It is an error if a
// pair does not have two elements.
func FromPairs[E comparable](pairs [][]E) (map[E]E, error) {
	table := make(map[E]E, len(pairs))
	for _, pair := range pairs {
		if len(pair) != 2 {
			return nil, fmt.Errorf("found a pair of %d elements; expected 2", len(pair))
		}
		table[pair[0]] = pair[1]
	}
	return table, nil
}
