package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// summary returns the five sentences at the top of README.md, which say what the tables mean.
func summary(tables []table) (string, error) {
	c := cells{tables: tables}
	const (
		server, window = "Server cost of a decision", "Memory of one subject's sliding window"
		process, both  = "A decision in process", "ours: sliding-window and calendar"
		script, denied = "script, allowed", "script, refused"
		redisRate      = "redis_rate, one rule"
		filling        = "ours: sliding-window, filling"
		byLimit        = "Server cost by the limit"
	)
	small, large := c.ends(byLimit)
	lines := []string{
		fmt.Sprintf("A limit a minute and a limit a day, decided together, take Redis %s as long as one limit of redis_rate; redis_rate called twice takes %s.",
			c.times(server, script, both+", filling; refused by the former", redisRate),
			c.times(server, script, "redis_rate, called twice for two rules", redisRate)),
		fmt.Sprintf("A limit may be large: a sliding window with %s takes %s as long as one with %s.", large,
			c.times(byLimit, script, large, small), small),
		fmt.Sprintf("A refused call takes %s µs of script time, an admitted one %s µs, and each further rule of the same subject another %s µs.",
			c.text(server, filling, denied), c.text(server, filling, script),
			c.text("Further rules in one decision", "sliding-window", "each further rule")),
		fmt.Sprintf("A subject takes %s bytes on the server after one call under a sliding window, and about %s for each permit of a full one; redis_rate takes %s, whatever the limit.",
			c.text("Memory of a subject", "ours: sliding-window", "MEMORY USAGE of the only one"), c.text(window, "limit 100", "for a permit"),
			c.text("Memory of a subject", redisRate, "MEMORY USAGE of the only one")),
		fmt.Sprintf("In process a decision takes %s ns, and one of x/time/rate %s ns; over the loopback interface this module makes %s as many decisions as redis_rate for one caller, and %s as many for 64.",
			c.text(process, "ours: sliding-window", "ns, one hot key"), c.text(process, "x/time/rate in a sync.Map", "ns, one hot key"),
			c.times("One caller", "decisions a second", both, redisRate), c.times("64 callers, 512 subjects", "decisions a second", both, redisRate)),
	}
	return "* " + strings.Join(lines, "\n* ") + "\n", c.err
}

// cells finds cells of tables. It keeps the first error.
type cells struct {
	tables []table
	err    error
}

// text returns the cell of a row and a column in the first table whose title begins so. Of a row and a column, too, it takes the first.
func (c *cells) text(title, row, column string) string {
	for _, t := range c.tables {
		if !strings.HasPrefix(t.title, title) {
			continue
		}
		col := slices.Index(t.header, column)
		at := slices.IndexFunc(t.rows, func(cells []string) bool { return cells[0] == row })
		if col > 0 && at >= 0 {
			return t.rows[at][col]
		}
	}
	if c.err == nil {
		c.err = fmt.Errorf("the tables have no cell %q, %q, %q", title, row, column)
	}
	return "?"
}

// ends returns the names of the first and the last row of a table.
func (c *cells) ends(title string) (first, last string) {
	for _, t := range c.tables {
		if strings.HasPrefix(t.title, title) {
			return t.rows[0][0], t.rows[len(t.rows)-1][0]
		}
	}
	return "", "" // text reports that the table is missing
}

// number returns a cell as a number.
func (c *cells) number(title, row, column string) float64 {
	x, err := strconv.ParseFloat(strings.ReplaceAll(c.text(title, row, column), ",", ""), 64)
	if c.err == nil {
		c.err = err
	}
	return x
}

// times divides a cell by that of another row in the same column: "2.0 times".
func (c *cells) times(title, column, row, other string) string {
	return fmt.Sprintf("%.1f times", c.number(title, row, column)/c.number(title, other, column))
}
