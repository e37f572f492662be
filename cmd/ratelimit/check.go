package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator"
)

// printStale lists the files that are not as they should be, and where they differ.
func (c *command) printStale(files []generator.File) int {
	stale, err := generator.Check(files)
	if err != nil {
		return c.fail(err)
	}
	for _, s := range stale {
		name := c.relative(s.Name)
		switch {
		case s.Found == nil:
			fmt.Fprintf(c.stderr, "%s: missing; run ratelimit\n", name)
		case s.Source == nil:
			fmt.Fprintf(c.stderr, "%s: stale, as its source has no directives; run ratelimit, which removes it\n", name)
		default:
			fmt.Fprintf(c.stderr, "%s: stale; run ratelimit\n", name)
			fmt.Fprint(c.stdout, diff(name, s.Found, s.Source))
		}
	}
	if len(stale) > 0 {
		return failed
	}
	return done
}

// diff shows the one stretch of lines in which two texts differ, as a unified diff with three lines around it. Scattered
// changes make it long, which does no harm: it is to tell what became stale, not to be applied by hand.
func diff(name string, before, after []byte) string {
	const around = 3
	a, b := bytes.SplitAfter(before, []byte("\n")), bytes.SplitAfter(after, []byte("\n"))
	first := 0
	for first < min(len(a), len(b)) && bytes.Equal(a[first], b[first]) {
		first++
	}
	same := 0
	for same < min(len(a), len(b))-first && bytes.Equal(a[len(a)-1-same], b[len(b)-1-same]) {
		same++
	}
	start, tail := max(0, first-around), min(same, around)
	var out bytes.Buffer
	fmt.Fprintf(&out, "--- %s\n+++ %[1]s\n@@ -%d,%d +%[2]d,%[4]d @@\n",
		name, start+1, len(a)-same+tail-start, len(b)-same+tail-start)
	lines := func(mark string, lines [][]byte) {
		for _, l := range lines {
			if len(l) > 0 {
				fmt.Fprintf(&out, "%s%s\n", mark, bytes.TrimSuffix(l, []byte("\n")))
			}
		}
	}
	lines(" ", a[start:first])
	lines("-", a[first:len(a)-same])
	lines("+", b[first:len(b)-same])
	lines(" ", slices.Clone(a[len(a)-same:])[:tail])
	return out.String()
}
