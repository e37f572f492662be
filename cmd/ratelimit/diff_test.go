package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDiff(t *testing.T) {
	var before []string
	for i := range 30 {
		before = append(before, fmt.Sprint("line ", i))
	}
	after := slices.Clone(before)
	after[2], after[28] = "changed", "changed, too"
	after = slices.Insert(after, 5, "new")
	want := `--- x
+++ x
@@ -1,8 +1,9 @@
 line 0
 line 1
-line 2
+changed
 line 3
 line 4
+new
 line 5
 line 6
 line 7
@@ -26,5 +27,5 @@
 line 25
 line 26
 line 27
-line 28
+changed, too
 line 29
`
	text := func(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	if got := diff("x", text(before), text(after)); got != want {
		t.Errorf("diff printed\n%s, expected\n%s", got, want)
	}
}

// TestFewestChanges compares with what is left when the longest list of lines that both have is taken away.
func TestFewestChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"{", "}", "", "a"}), 0, 12)
		a, b := lines.Draw(t, "a"), lines.Draw(t, "b")
		made, edits, last := []string{}, 0, 0
		for _, c := range changesOf(a, b) {
			made = append(append(made, a[last:c.a0]...), b[c.b0:c.b1]...)
			edits, last = edits+c.a1-c.a0+c.b1-c.b0, c.a1
		}
		if made = append(made, a[last:]...); !slices.Equal(made, b) {
			t.Fatalf("made %q of %q, expected %q", made, a, b)
		}
		if fewest := len(a) + len(b) - 2*common(a, b); edits != fewest {
			t.Fatalf("%d edits from %q to %q, expected %d", edits, a, b, fewest)
		}
	})
}

// common is the length of the longest list of lines that both have in their order.
func common(a, b []string) int {
	switch {
	case len(a) == 0 || len(b) == 0:
		return 0
	case a[0] == b[0]:
		return 1 + common(a[1:], b[1:])
	}
	return max(common(a[1:], b), common(a, b[1:]))
}

// TestDiffOfTooMuch replaces a text that has little in common with the other.
func TestDiffOfTooMuch(t *testing.T) {
	var a, b []string
	for i := range mostEdits {
		a, b = append(a, fmt.Sprint("a", i)), append(b, fmt.Sprint("b", i))
	}
	a, b = append(a, "same"), append(b, "same")
	if got := changesOf(a, b); len(got) != 1 || got[0] != (change{0, len(a), 0, len(b)}) {
		t.Errorf("found %v", got)
	}
}
