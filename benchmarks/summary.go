package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// writeSummary writes the sentences at the top of a page whose tables are new.
func writeSummary(file string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	sentences, err := summary(tablesOf(string(page)))
	if err != nil {
		return err
	}
	return replace(file, "summary", sentences)
}

// The titles and columns of several tables begin so.
const (
	serverTable  = "Server cost of a decision"
	furtherTable = "Further rules in one decision"
	limitTable   = "Server cost by the limit"
	windowTable  = "Memory of one subject's sliding window"
	memoryTable  = "Memory of a subject on the server"
	processTable = "A decision in process"
	script       = "script, allowed"
	usage        = "MEMORY USAGE"
	hotKey       = "ns, one hot key"
)

// summary returns five sentences, which say what the tables mean.
func summary(tables []table) (string, error) {
	c := cells{tables: tables}
	small, large := c.ends(limitTable)
	lines := []string{
		fmt.Sprintf("A limit a minute and a limit a day, decided together, take Redis %s as long as one limit of redis_rate; redis_rate called twice takes %s.",
			c.times(serverTable, script, both+", filling; refused by the former", redisRateOne),
			c.times(serverTable, script, "redis_rate, called twice for two rules", redisRateOne)),
		fmt.Sprintf("A limit may be large: a sliding window with %s takes %s as long as one with %s.", large, c.times(limitTable, script, large, small), small),
		fmt.Sprintf("A refused call takes %s µs of script time, an admitted one %s µs, and each further rule of the same subject another %.2f µs.",
			c.text(serverTable, "ours: sliding-window, filling", "script, refused"), c.text(serverTable, "ours: sliding-window, filling", script),
			c.furtherRule("sliding-window")),
		fmt.Sprintf("A subject takes %s bytes on the server after one call under a sliding window, and about %s for each permit of a full one; redis_rate takes %s, whatever the limit.",
			c.text(memoryTable, "ours: sliding-window", usage), c.text(windowTable, "limit 100", "for a permit"), c.text(memoryTable, redisRateOne, usage)),
		fmt.Sprintf("In process a decision takes %s ns, and one of x/time/rate %s ns; over the loopback interface this module makes %s as many decisions as redis_rate for one caller, and %s as many for 64.",
			c.text(processTable, "ours: sliding-window", hotKey), c.text(processTable, "x/time/rate in a sync.Map", hotKey),
			c.times("One caller", "decisions a second", both, redisRateOne), c.times("64 callers", "decisions a second", both, redisRateOne)),
	}
	return "* " + strings.Join(lines, "\n* ") + "\n", c.err
}

// cells finds cells of tables. It keeps the first error.
type cells struct {
	tables []table
	err    error
}

// text returns the cell of a row and a column in the table whose title begins so. It takes the first column of a name.
func (c *cells) text(title, name, column string) string {
	for _, t := range c.tables {
		if !strings.HasPrefix(t.title, title) {
			continue
		}
		col := slices.Index(t.header, column)
		at := slices.IndexFunc(t.rows, func(cells []string) bool { return cells[0] == name })
		if col > 0 && at >= 0 {
			return t.rows[at][col]
		}
	}
	if c.err == nil {
		c.err = fmt.Errorf("the tables have no cell %q, %q, %q", title, name, column)
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
func (c *cells) number(title, name, column string) float64 {
	x, err := strconv.ParseFloat(strings.ReplaceAll(c.text(title, name, column), ",", ""), 64)
	if c.err == nil {
		c.err = err
	}
	return x
}

// times divides a cell by that of another row in the same column: "2.0 times".
func (c *cells) times(title, column, name, other string) string {
	return fmt.Sprintf("%.1f times", c.number(title, name, column)/c.number(title, other, column))
}

// furtherRule returns how much longer a script takes for each rule after the first.
func (c *cells) furtherRule(algorithm string) float64 {
	return (c.number(furtherTable, algorithm, strconv.Itoa(maxRules)) - c.number(furtherTable, algorithm, "1")) / (maxRules - 1)
}
