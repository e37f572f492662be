package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A ring behaves like a sorted list.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var list []int64
		time := rapid.Int64Range(0, 20)
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				at, count := time.Draw(t, "time"), rapid.IntRange(1, 5).Draw(t, "count")
				r.insert(at, count)
				for range count {
					list = append(list, at)
				}
				slices.Sort(list)
			},
			"drop": func(t *rapid.T) {
				n := rapid.IntRange(-1, len(list)).Draw(t, "n")
				r.drop(n)
				list = list[max(n, 0):]
			},
			"remove": func(t *rapid.T) {
				i := rapid.IntRange(0, len(list)).Draw(t, "i")
				n := rapid.IntRange(0, len(list)-i).Draw(t, "n")
				r.remove(i, n)
				list = slices.Delete(list, i, i+n)
			},
			"": func(t *rapid.T) {
				if r.len() != len(list) {
					t.Fatalf("%d times, want %d", r.len(), len(list))
				}
				for i, want := range list {
					if got := r.at(i); got != want {
						t.Fatalf("number %d is %d, want %d", i, got, want)
					}
				}
				at := time.Draw(t, "searched")
				if want, _ := slices.BinarySearch(list, at); r.search(at) != want {
					t.Fatalf("%d times before %d, want %d", r.search(at), at, want)
				}
				if n := len(r.times); n&(n-1) != 0 {
					t.Fatalf("room for %d times, not a power of two", n)
				}
			},
		})
	})
}
