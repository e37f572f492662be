package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/ratelimit-go/ratelimit/generator"
)

// row is a rule as it is printed.
type row struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Method    string `json:"method"`
	Rule      string `json:"rule"`
	Key       string `json:"key"`
	Limit     int64  `json:"limit"`
	LimitExpr string `json:"limitExpr,omitempty"` // in place of a number
	Window    string `json:"window"`
	Algorithm string `json:"algorithm"`
}

func (c *command) printRules(rules []generator.Rule) error {
	rows := []row{} // JSON's null would be no list
	for _, r := range rules {
		rows = append(rows, row{
			c.relative(r.File), r.Line, r.Method, r.Name, r.Key, r.Limit, r.LimitExpr, r.Window, r.Algorithm.String(),
		})
	}
	if c.json {
		e := json.NewEncoder(c.stdout)
		e.SetIndent("", "\t")
		e.SetEscapeHTML(false)
		return e.Encode(rows)
	}
	t := tabwriter.NewWriter(c.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "WHERE\tMETHOD\tRULE\tKEY\tLIMIT\tWINDOW\tALGORITHM")
	for _, r := range rows {
		fmt.Fprintf(t, "%s:%d\t%s\t%s\t%s\t%s\t%s\t%s\n", r.File, r.Line, r.Method, r.Rule, orDash(r.Key), r.limit(), r.Window, r.Algorithm)
	}
	return t.Flush()
}

// limit is the limit as it is written.
func (r row) limit() string {
	if r.LimitExpr != "" {
		return r.LimitExpr
	}
	return strconv.FormatInt(r.Limit, 10)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
