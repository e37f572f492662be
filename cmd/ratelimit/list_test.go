package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/rulelist"
)

const listedSource = `package x

import "context"

//ratelimit:rule limit=100_000 per=1h algorithm=fixed-window
type X interface {
	//ratelimit:rule key="{a}" limit=1 per=1m name=x
	//ratelimit:rule key="{a}|*" limit=10 cron="@daily" tz=Europe/Berlin block=1h
	M(a string) error

	//ratelimit:rule key="{userID(ctx)}" limit="len(a)" per=1m
	//ratelimit:rule limit=5 per=1m scope=instance mode=shadow when="len(a) > 3"
	N(ctx context.Context, a string) error
}
`

// printed returns the output of -list at noon of a day with 25 hours.
func printed(t *testing.T, change func(*command)) string {
	t.Helper()
	dir := module(t, "x.go", listedSource)
	result, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"."}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := &command{stdout: &out, config: generator.Config{Dir: dir}}
	change(c)
	if err := c.printRules(c.rows(result.Rules, time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC))); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestListSettings expects the settings of a rule other than its limit and window.
func TestListSettings(t *testing.T) {
	wanted := map[string]string{
		"per=1m mode=enforce scope=fleet cost=1 refund=never": "- {}",
		"per=1m mode=trigger":                                    `mode=trigger {"mode":"trigger"}`,
		"per=1m block=1d12h":                                     `block=1d12h {"block":"1d12h"}`,
		"per=1m wait=45s refund=error on-error=local":            `wait=45s on-error=local refund=error {"on-error":"local","refund":"error","wait":"45s"}`,
		`per=1m cost=3 when="len(a) > 3"`:                        `cost=3 when="len(a) > 3" {"cost":3,"when":"len(a) > 3"}`,
		`per=1m cost="len(a)"`:                                   `cost="len(a)" {"cost":"len(a)"}`,
		`per=1m distinct="{a}"`:                                  `distinct="{a}" {"distinct":"{a}"}`,
		"per=1m algorithm=token-bucket burst=20 wait=2s queue=7": `wait=2s burst=20 queue=7 {"burst":20,"queue":7,"wait":"2s"}`,
		"per=1m algorithm=leaky-bucket prepay":                   `prepay {"prepay":true}`,
		"per=1m algorithm=token-bucket warmup=5s":                `warmup=5s {"warmup":"5s"}`,
		"per=1m algorithm=sliding-counter slices=6":              `slices=6 {"slices":6}`,
		`cron="0  0 * * *" tz=UTC`:                               "- {}",
		`every=2w anchor="date('2026-01-31')" tz=Asia/Tokyo`:     `tz=Asia/Tokyo anchor="date('2026-01-31')" {"anchor":"date('2026-01-31')","tz":"Asia/Tokyo"}`,
		"per=1m report=true":                                     "- {}",
		"per=1m report=false":                                    `report=false {"report":"false"}`,
		"cron=@daily tz=Asia/Shanghai":                           `tz=Asia/Shanghai {"tz":"Asia/Shanghai"}`,
	}
	rules := slices.Sorted(maps.Keys(wanted))
	var texts []string
	for _, rule := range rules {
		texts = append(texts, "limit=10 "+rule)
	}
	for i, r := range rowsWith(t, texts) {
		t.Run(rules[i], func(t *testing.T) {
			fields, err := json.Marshal(r.Settings)
			if err != nil {
				t.Fatal(err)
			}
			if got := cells(r)[7] + " " + strings.NewReplacer(`\u003e`, ">").Replace(string(fields)); got != wanted[rules[i]] {
				t.Errorf("found %s, expected %s", got, wanted[rules[i]])
			}
		})
	}
}

// TestListOddCells lists keys with characters that would begin another cell or row.
func TestListOddCells(t *testing.T) {
	r := rowsWith(t, []string{`limit="len(\n\ta)" per=1m key="{a}\t|"`})[0]
	if cells := cells(r); cells[3] != `"{a}\t|"` || cells[4] != `"len(\n\ta)"` {
		t.Errorf("the key is %s, the limit %s", cells[3], cells[4])
	}
}

// rowsWith returns the rows of methods with one rule each.
func rowsWith(t *testing.T, rules []string) []rulelist.Row {
	t.Helper()
	dir := module(t)
	for i, rule := range rules {
		write(t, dir, fmt.Sprintf("%02d/x.go", i), "package x\n\nimport (\"context\"; \"io\")\n\ntype X interface {\n\t//ratelimit:rule "+rule+
			"\n\tM(ctx context.Context, a string) (rows io.Closer, err error)\n}\n")
	}
	result, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"./..."}})
	if err != nil {
		t.Fatal(err)
	}
	c := &command{config: generator.Config{Dir: dir}}
	return c.rows(result.Rules, time.Time{})
}

func TestListTable(t *testing.T) {
	const want = `
WHERE    METHOD  RULE   KEY            LIMIT   WINDOW  ALGORITHM       SETTINGS                                      NEXT
x.go:7   x.X.M   x      {a}            1       1m      sliding-window  -                                             -
x.go:8   x.X.M   x.X.M  {a}|*          10      @daily  calendar        tz=Europe/Berlin block=1h                     2026-10-25T00:00:00+02:00 2026-10-26T00:00:00+01:00 2026-10-27T00:00:00+01:00
x.go:5   x.X.M   x.X    -              100000  1h      fixed-window    -                                             -
x.go:11  x.X.N   x.X.N  {userID(ctx)}  len(a)  1m      sliding-window  -                                             -
x.go:12  x.X.N   x.X.N  -              5       1m      sliding-window  mode=shadow when="len(a) > 3" scope=instance  -
x.go:5   x.X.N   x.X    -              100000  1h      fixed-window    -                                             -
`
	if got := "\n" + printed(t, func(*command) {}); got != want {
		t.Errorf("printed%sexpected%s", got, want)
	}
}

func TestListMarkdown(t *testing.T) {
	const want = `
| where | method | rule | key | limit | window | algorithm | settings | next |
|---|---|---|---|---|---|---|---|---|
| x.go:7 | x.X.M | x | {a} | 1 | 1m | sliding-window | - | - |
| x.go:8 | x.X.M | x.X.M | {a}\|\* | 10 | @daily | calendar | tz=Europe/Berlin block=1h | 2026-10-25T00:00:00+02:00 2026-10-26T00:00:00+01:00 2026-10-27T00:00:00+01:00 |
| x.go:5 | x.X.M | x.X | - | 100000 | 1h | fixed-window | - | - |
| x.go:11 | x.X.N | x.X.N | {userID(ctx)} | len(a) | 1m | sliding-window | - | - |
| x.go:12 | x.X.N | x.X.N | - | 5 | 1m | sliding-window | mode=shadow when="len(a) > 3" scope=instance | - |
| x.go:5 | x.X.N | x.X | - | 100000 | 1h | fixed-window | - | - |
`
	if got := "\n" + printed(t, func(c *command) { c.markdown = true }); got != want {
		t.Errorf("printed%sexpected%s", got, want)
	}
}

func TestListJSON(t *testing.T) {
	got := printed(t, func(c *command) { c.json = true })
	if want := read(t, "testdata", "list.json"); got != want {
		t.Errorf("printed\n%sexpected\n%s", got, want)
	}
	var rows []rulelist.Row
	if err := json.Unmarshal([]byte(got), &rows); err != nil || len(rows) != 6 {
		t.Errorf("read back as %d rows, %v", len(rows), err)
	}
}

func TestListCommand(t *testing.T) {
	dir := module(t, "x.go", source)
	for _, format := range []string{"-list", "-json", "-markdown"} {
		if stdout, stderr := expect(t, 0, dir, "-list", format); !strings.Contains(stdout, "x.X.M") || stderr != "" {
			t.Errorf("%s printed %q and %q", format, stdout, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x_ratelimit.go")); err == nil {
		t.Error("-list wrote a file")
	}
}
