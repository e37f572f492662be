package main

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/rulelist"
)

// shownEnds is the number of ends of calendar windows that a row shows.
const shownEnds = 3

// rows returns the rules as they are printed, with the next ends of their calendar windows after now.
func (c *command) rows(rules []generator.Rule, now time.Time) []rulelist.Row {
	rows := []rulelist.Row{} // not nil, which JSON writes as null
	for _, r := range rules {
		row := r.Row
		row.File, row.Boundaries = c.relative(row.File), r.Ends(now, shownEnds)
		rows = append(rows, row)
	}
	return rows
}

// printRules prints all rules.
func (c *command) printRules(rows []rulelist.Row) error {
	switch {
	case c.json:
		return encode(c.stdout, rows, "\t")
	case c.markdown:
		return c.printMarkdown(rows)
	default:
		return c.printTable(rows)
	}
}

func (c *command) printTable(rows []rulelist.Row) error {
	t := tabwriter.NewWriter(c.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(columns, "\t")))
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(cells(r), "\t"))
	}
	return t.Flush()
}

func (c *command) printMarkdown(rows []rulelist.Row) error {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(columns)
	b.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	for _, r := range rows {
		cells := cells(r)
		for i := range cells {
			cells[i] = markdown.Replace(cells[i])
		}
		line(cells)
	}
	_, err := fmt.Fprint(c.stdout, b.String())
	return err
}

// markdown escapes the special characters of Markdown.
var markdown = strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", `\`, `\\`, "<", "&lt;", "[", `\[`)

var columns = []string{"where", "method", "rule", "key", "limit", "window", "algorithm", "settings", "next"}

// cells returns the columns of a row, each on one line.
func cells(r rulelist.Row) []string {
	var settings []string
	for _, arg := range annotations.LookUp("rule").Args {
		if value, ok := r.Settings[arg.Name]; ok {
			settings = append(settings, rulelist.Argument(arg.Name, value))
		}
	}
	cells := []string{
		fmt.Sprintf("%s:%d", r.File, r.Line), r.Method, r.Rule, r.Key, r.LimitText(), r.Window, r.Algorithm,
		strings.Join(settings, " "), strings.Join(r.Boundaries, " "),
	}
	for i, cell := range cells {
		switch {
		case cell == "":
			cells[i] = "-"
		case strings.ContainsFunc(cell, func(c rune) bool { return !unicode.IsPrint(c) }):
			cells[i] = strconv.Quote(cell) // a tab would begin another cell, and a newline another row
		}
	}
	return cells
}
