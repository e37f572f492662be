package main

import (
	"fmt"
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

// changesOf finds what differs between two lists of lines, in their order. Where many lines are alike it may find more than
// need be.
func changesOf(a, b []string) []change {
	var found []change
	var compare func(c change)
	compare = func(c change) {
		for c.a0 < c.a1 && c.b0 < c.b1 && a[c.a0] == b[c.b0] {
			c.a0, c.b0 = c.a0+1, c.b0+1
		}
		for c.a0 < c.a1 && c.b0 < c.b1 && a[c.a1-1] == b[c.b1-1] {
			c.a1, c.b1 = c.a1-1, c.b1-1
		}
		if c.a0 == c.a1 && c.b0 == c.b1 {
			return
		}
		i, j, ok := anchor(a[c.a0:c.a1], b[c.b0:c.b1])
		if !ok {
			found = append(found, c)
			return
		}
		compare(change{c.a0, c.a0 + i, c.b0, c.b0 + j})
		compare(change{c.a0 + i, c.a1, c.b0 + j, c.b1})
	}
	compare(change{0, len(a), 0, len(b)})
	return found
}

// anchor finds a line that stands once in each list: of all, one that is at much the same place in both.
func anchor(a, b []string) (i, j int, ok bool) {
	inA, inB := lone(a), lone(b)
	best := 0
	for line, x := range inA {
		y, both := inB[line]
		if !both || x < 0 || y < 0 {
			continue
		}
		off := max(x-y, y-x)
		if !ok || off < best || off == best && x < i {
			i, j, ok, best = x, y, true, off
		}
	}
	return i, j, ok
}

// lone returns where each line stands; -1 for one that stands there twice.
func lone(lines []string) map[string]int {
	at := map[string]int{}
	for i, l := range lines {
		if _, twice := at[l]; twice {
			i = -1
		}
		at[l] = i
	}
	return at
}
