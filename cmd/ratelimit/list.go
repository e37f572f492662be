package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/listed"
)

// row is a rule as it is printed.
type row struct {
	listed.Row
	settings string // as in a directive
}

// shownBoundaries is how many ends of calendar windows are printed.
const shownBoundaries = 3

func (c *command) rowOf(r generator.Rule, now time.Time) row {
	printed := row{Row: listed.Row{
		File: c.relative(r.File), Line: r.Line, Method: r.Method, Rule: r.Name, Key: r.Key, LimitExpr: r.LimitExpr,
		Window: r.Window, Algorithm: r.Algorithm.String(), Settings: r.Settings,
	}}
	if r.LimitExpr == "" {
		printed.Limit = &r.Limit
	}
	var settings []string
	for _, arg := range annotations.LookUp("rule").Args {
		if value, ok := r.Settings[arg.Name]; ok {
			settings = append(settings, listed.Argument(arg.Name, value))
		}
	}
	printed.settings = strings.Join(settings, " ")
	for _, b := range r.Boundaries(now, shownBoundaries) {
		printed.Boundaries = append(printed.Boundaries, b.Format(time.RFC3339))
	}
	return printed
}

// printRules prints all rules; now is the time from which their next boundaries count.
func (c *command) printRules(rules []generator.Rule, now time.Time) error {
	rows := []row{} // JSON's null would be no list
	for _, r := range rules {
		rows = append(rows, c.rowOf(r, now))
	}
	switch {
	case c.json:
		e := json.NewEncoder(c.stdout)
		e.SetIndent("", "\t")
		e.SetEscapeHTML(false)
		return e.Encode(rows)
	case c.markdown:
		return c.printMarkdown(rows)
	default:
		return c.printTable(rows)
	}
}

func (c *command) printTable(rows []row) error {
	t := tabwriter.NewWriter(c.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(columns, "\t")))
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r.cells(), "\t"))
	}
	return t.Flush()
}

func (c *command) printMarkdown(rows []row) error {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(columns)
	b.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	for _, r := range rows {
		cells := r.cells()
		for i := range cells {
			cells[i] = markdown.Replace(cells[i])
		}
		line(cells)
	}
	_, err := fmt.Fprint(c.stdout, b.String())
	return err
}

// markdown keeps what means something in Markdown from doing so.
var markdown = strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", `\`, `\\`, "<", "&lt;", "[", `\[`)

var columns = []string{"where", "method", "rule", "key", "limit", "window", "algorithm", "settings", "next"}

// cells are the row's columns, each on one line.
func (r row) cells() []string {
	limit := r.LimitExpr
	if r.Limit != nil {
		limit = strconv.FormatInt(*r.Limit, 10)
	}
	cells := []string{
		fmt.Sprintf("%s:%d", r.File, r.Line), r.Method, r.Rule, r.Key, limit, r.Window, r.Algorithm, r.settings,
		strings.Join(r.Boundaries, " "),
	}
	for i, cell := range cells {
		switch {
		case cell == "":
			cells[i] = "-"
		case strings.ContainsFunc(cell, func(c rune) bool { return !unicode.IsPrint(c) }):
			cells[i] = strconv.Quote(cell) // a tab would begin the next cell, a line's end the next row
		}
	}
	return cells
}
