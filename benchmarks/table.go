package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// table is a Markdown table under a heading. Its first column is text, the others are numbers.
type table struct {
	title  string
	header []string
	rows   [][]string
}

func (t table) write(w io.Writer) {
	fmt.Fprintf(w, "\n### %s\n\n", t.title)
	fmt.Fprintf(w, "| %s |\n|---%s|\n", strings.Join(t.header, " | "), strings.Repeat("|--:", len(t.header)-1))
	for _, cells := range t.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}

var title = regexp.MustCompile(`(?m)^### (.*)\n`)

// tablesOf parses tables as they are written.
func tablesOf(page string) (tables []table) {
	at := title.FindAllStringSubmatchIndex(page, -1)
	for i, m := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		t := table{title: page[m[2]:m[3]]}
		for line := range strings.Lines(page[m[1]:end]) {
			line, ok := strings.CutPrefix(strings.TrimSpace(line), "| ")
			if !ok {
				continue
			}
			cells := strings.Split(strings.TrimSuffix(line, " |"), " | ")
			if t.header == nil {
				t.header = cells
			} else {
				t.rows = append(t.rows, cells)
			}
		}
		tables = append(tables, t)
	}
	return tables
}

// number prints x with about three digits.
func number(x float64) string {
	switch {
	case x >= 100:
		return grouped(x)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	default:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
}

// grouped prints a whole number, with commas between thousands.
func grouped(x float64) string {
	s := strconv.FormatInt(int64(x+0.5), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
