package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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
