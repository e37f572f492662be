package main

import (
	"fmt"
	"slices"
	"strings"
)

// change is a stretch of lines of one text, a[a0:a1], that stands as b[b0:b1] in the other.
type change struct{ a0, a1, b0, b1 int }

// diff shows what differs between two texts: the changed lines, each with up to three around it.
func diff(name string, before, after []byte) string {
	const around = 3
	a, b := splitLines(before), splitLines(after)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %[1]s\n", name)
	lines := func(mark string, lines []string) {
		for _, l := range lines {
			out.WriteString(mark + l + "\n")
		}
	}
	for changes := changesOf(a, b); len(changes) > 0; {
		n := 1 // those that are shown together
		for n < len(changes) && changes[n].a0-changes[n-1].a1 <= 2*around {
			n++
		}
		first, last := changes[0], changes[n-1]
		lead, tail := min(first.a0, around), min(len(a)-last.a1, around)
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n",
			first.a0-lead+1, last.a1+tail-first.a0+lead, first.b0-lead+1, last.b1+tail-first.b0+lead)
		at := first.a0 - lead
		for _, c := range changes[:n] {
			lines(" ", a[at:c.a0])
			lines("-", a[c.a0:c.a1])
			lines("+", b[c.b0:c.b1])
			at = c.a1
		}
		lines(" ", a[at:at+tail])
		changes = changes[n:]
	}
	return out.String()
}

func splitLines(text []byte) []string {
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// mostEdits bounds the search for the fewest edits, which takes memory by the square of them.
const mostEdits = 2000

// changesOf returns the fewest changes that make b of a, in their order: the algorithm of E. W. Myers. Beyond mostEdits all is one
// change.
func changesOf(a, b []string) []change {
	reached := search(a, b)
	if reached == nil {
		return []change{{0, len(a), 0, len(b)}}
	}
	var found []change // the last one first
	x, y := len(a), len(b)
	for d := len(reached) - 1; d > 0; d-- {
		at, from := edit(reached[d-1], x-y)
		end := at - (x - y)
		x = reached[d-1][from+d-1]
		y = x - from
		if n := len(found); n > 0 && found[n-1].a0 == at && found[n-1].b0 == end {
			found[n-1].a0, found[n-1].b0 = x, y
		} else {
			found = append(found, change{x, at, y, end})
		}
	}
	slices.Reverse(found)
	return found
}

// search makes one edit more at a time, until b is made of all of a. In reached[d][k+d] it keeps how much of a can be dealt with by d
// edits at the most, where k lines more of a are than of b.
func search(a, b []string) (reached [][]int) {
	for d := range mostEdits + 1 {
		reach := make([]int, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				x, _ = edit(reached[d-1], k)
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			if reach[k+d] = x; x == len(a) && x-k == len(b) {
				return append(reached, reach)
			}
		}
		reached = append(reached, reach)
	}
	return nil
}

// edit returns how much of a is dealt with when one edit more leads to k, and from where: the line of b is inserted that is next, or
// that of a is deleted.
func edit(reach []int, k int) (x, from int) {
	d := len(reach) / 2
	if k-1 < -d || k+1 <= d && reach[k+1+d] > reach[k-1+d] {
		return reach[k+1+d], k + 1
	}
	return reach[k-1+d] + 1, k - 1
}
