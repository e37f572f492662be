package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/generator"
)

const listed = `package x

import "context"

//ratelimit:rule limit=100_000 per=1h algorithm=fixed-window
type X interface {
	//ratelimit:rule key="{a}" limit=1 per=1m name=x
	//ratelimit:rule key="{a}|*" limit=10 cron="@daily" tz=Europe/Berlin block=1h
	M(a string) error

	//ratelimit:rule key="{userID(ctx)}" limit="len(a)" per=1m
	//ratelimit:rule limit=5 per=1m scope=instance
	N(ctx context.Context, a string) error
}
`

// printed returns what -list prints at noon before a night with 25 hours.
func printed(t *testing.T, change func(*command)) string {
	t.Helper()
	dir := module(t, "x.go", listed)
	result, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"."}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := &command{stdout: &out, config: generator.Config{Dir: dir}}
	change(c)
	if err := c.printRules(result.Rules, time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestListTable(t *testing.T) {
	const want = `
WHERE    METHOD  RULE   KEY            LIMIT   WINDOW                     ALGORITHM       COMMANDS  BYTES          NEXT
x.go:7   x.X.M   x      {a}            1       1m                         sliding-window  3-5       208            -
x.go:8   x.X.M   x.X.M  {a}|*          10      cron:@daily:Europe/Berlin  calendar        3         288            2026-10-25T00:00:00+02:00 2026-10-26T00:00:00+01:00 2026-10-27T00:00:00+01:00
x.go:5   x.X.M   x.X    -              100000  fixed:1h                   fixed-window    2         109            -
x.go:11  x.X.N   x.X.N  {userID(ctx)}  len(a)  1m                         sliding-window  3-5       216+10/permit  -
x.go:12  x.X.N   x.X.N  -              5       1m                         sliding-window  0         0              -
x.go:5   x.X.N   x.X    -              100000  fixed:1h                   fixed-window    2         109            -
`
	if got := "\n" + printed(t, func(*command) {}); got != want {
		t.Errorf("printed%sexpected%s", got, want)
	}
}

func TestListMarkdown(t *testing.T) {
	const want = `
| where | method | rule | key | limit | window | algorithm | commands | bytes | next |
|---|---|---|---|---|---|---|---|---|---|
| x.go:7 | x.X.M | x | {a} | 1 | 1m | sliding-window | 3-5 | 208 | - |
| x.go:8 | x.X.M | x.X.M | {a}\|\* | 10 | cron:@daily:Europe/Berlin | calendar | 3 | 288 | 2026-10-25T00:00:00+02:00 2026-10-26T00:00:00+01:00 2026-10-27T00:00:00+01:00 |
| x.go:5 | x.X.M | x.X | - | 100000 | fixed:1h | fixed-window | 2 | 109 | - |
| x.go:11 | x.X.N | x.X.N | {userID(ctx)} | len(a) | 1m | sliding-window | 3-5 | 216+10/permit | - |
| x.go:12 | x.X.N | x.X.N | - | 5 | 1m | sliding-window | 0 | 0 | - |
| x.go:5 | x.X.N | x.X | - | 100000 | fixed:1h | fixed-window | 2 | 109 | - |
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
	var rows []row
	if err := json.Unmarshal([]byte(got), &rows); err != nil || len(rows) != 6 {
		t.Errorf("read back as %d rows, %v", len(rows), err)
	}
}

func TestListCommand(t *testing.T) {
	dir, empty := module(t, "x.go", source), module(t, "x.go", "package x\n")
	for _, format := range []string{"-list", "-json", "-markdown"} {
		if stdout, stderr := expect(t, 0, dir, "-list", format); !strings.Contains(stdout, "x.X.M") || stderr != "" {
			t.Errorf("%s printed %q and %q", format, stdout, stderr)
		}
	}
	if stdout, _ := expect(t, 0, empty, "-list", "-json"); stdout != "[]\n" {
		t.Errorf("of no rules it printed %q", stdout)
	}
	if _, err := os.Stat(filepath.Join(dir, "x_ratelimit.go")); err == nil {
		t.Error("-list wrote a file")
	}
}
