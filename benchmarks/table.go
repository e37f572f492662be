package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// table is a Markdown table under a heading. Its first column is text, the others are numbers.
type table struct {
	title, note string
	header      []string
	rows        [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) {
	fmt.Fprintf(w, "\n### %s\n\n", t.title)
	if t.note != "" {
		fmt.Fprintf(w, "%s\n\n", t.note)
	}
	fmt.Fprintf(w, "| %s |\n|---%s|\n", strings.Join(t.header, " | "), strings.Repeat("|--:", len(t.header)-1))
	for _, row := range t.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
}

// number prints x with about three digits.
func number(x float64) string {
	switch {
	case x >= 100:
		return grouped(int64(x + 0.5))
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	default:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
}

// grouped prints n with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ratio prints how many times base x is.
func ratio(x, base float64) string { return strconv.FormatFloat(x/base, 'f', 2, 64) + "×" }

// low is the tenth percentile: on a busy machine the larger values measure the machine.
func low(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/10]
}
