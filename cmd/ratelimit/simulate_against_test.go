package main

import (
	"encoding/json"
	"strings"
	"testing"
)

const callsOfX = `timestamp,method,{a},len(a),{b}
2026-03-02T09:00:00Z,M,ann,3,1
2026-03-02T09:00:10Z,X.M,ann,3,1
2026-03-02T09:00:20Z,x.X.M,bob,3,1
2026-03-02T09:00:30Z,M,ann,3,1
2026-03-02T09:00:30Z,N,ann,1,
2026-03-02T09:00:40Z,N,ann,1,
2026-03-02T09:00:40Z,Other,,,
`

// Nothing is decided otherwise than at the same commit. After a change, the output says what is decided otherwise, and -check fails.
func TestSimulateAgainst(t *testing.T) {
	dir := module(t, "x.go", strings.Replace(limited, `distinct="{a}"`, `key="{a}"`, 1))
	before, _ := expect(t, 0, dir, "-list", "-json", "./...")
	write(t, dir, "before.json", before)
	write(t, dir, "calls.csv", callsOfX)
	against := []string{"simulate", "-against", "before.json", "-check", "-load", "csv:calls.csv"}
	stdout, stderr := expect(t, 0, dir, append(against, "./...")...)
	if stdout != "csv:calls.csv: 6 calls, 0 of them are decided otherwise; 1 call of other methods left out, the first of \"Other\" in line 8\n\nno calls: x.X.O\n" || stderr != "" {
		t.Errorf("against itself: %s%s", stdout, stderr)
	}
	write(t, dir, "x.go", `package x

type X interface {
	//ratelimit:rule key="{a}" limit=1 per=1m
	//ratelimit:rule name=conditional limit=3 per=1m when="a != \"\""
	M(a string) error

	//ratelimit:rule limit=len(a) per=1h
	N(a string) error
}
`)
	stdout, stderr = expect(t, 1, dir, append(against, "./...")...)
	const want = `
csv:calls.csv: 6 calls, 3 of them are decided otherwise; 1 call of other methods left out, the first of "Other" in line 8

METHOD  RULE                                             WAS           NOW       CALLS  KEYS  FIRST
x.X.M   x.X.M key="{a}" limit=1 per=1m                   admitted      refused   1      1     2026-03-02T09:00:10Z ann admitted, now refused for 50s
x.X.M   x.X.M limit=3 cron="@hourly" cost=2 mode=shadow  would refuse  admitted  3      -     2026-03-02T09:00:10Z would refuse for 59m50s, now admitted

changed: x.X.M: key="{a}" limit=1 per=1m; was key="{a}" limit=2 per=1m
new: conditional of x.X.M: limit=3 per=1m when="a != \"\""
not compared: conditional of x.X.M: when="a != \"\"" needs a column when or "a != \"\""
changed: x.X.N: limit="len(a)" per=1h; was limit="len(a)" per=1m
gone: x.X.M: limit=3 cron="@hourly" cost=2 mode=shadow
gone: x.X.O: key="{a}" limit=1 per=1m
no calls: x.X.O
`
	if "\n"+stdout != want || stderr != "" {
		t.Errorf("printed\n%s%s\nexpected%s", stdout, stderr, want)
	}
	stdout, _ = expect(t, 0, dir, "simulate", "-against", "before.json", "-json", "-load", "csv:calls.csv")
	var result struct {
		Otherwise  int
		FirstOther struct {
			Method string
			Line   int
		}
		Rules []struct {
			Calls       int64
			Differences []struct {
				Was, Now string
				First    struct {
					Now struct{ Verdict, Delay string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || result.Otherwise != 3 || result.FirstOther.Method != "Other" || result.FirstOther.Line != 8 || result.Rules[0].Calls != 4 || result.Rules[0].Differences[0].First.Now.Delay != "50s" {
		t.Errorf("%v\n%s", err, stdout)
	}
	expect(t, 0, dir, append(against, "-method", "N")...)
	stdout, _ = expect(t, 1, dir, "simulate", "-against", "before.json", "-check", "-method", "X.M", "-load", "constant:1/s", "-for", "2s")
	if !strings.Contains(stdout, "2026-01-01T00:00:01Z key-1 admitted, now refused for 59s") {
		t.Errorf("under a constant load: %s", stdout)
	}
}

// A changed rule whose key has no column does not pass -check, although no call is decided otherwise.
func TestSimulateAgainstNotCompared(t *testing.T) {
	const source = "package x\n\ntype X interface {\n\t//ratelimit:rule key=\"{a}\" limit=1 per=1m\n\tM(a string) error\n}\n"
	dir := module(t, "x.go", source, "calls.csv", "timestamp,{a}\n1,ann\n")
	before, _ := expect(t, 0, dir, "-list", "-json")
	write(t, dir, "before.json", before)
	against := []string{"simulate", "-against", "before.json", "-check", "-load", "csv:calls.csv"}
	expect(t, 0, dir, against...)
	write(t, dir, "x.go", strings.NewReplacer("{a}", "{b}", "a string", "b string").Replace(source))
	stdout, _ := expect(t, 1, dir, against...)
	const want = `
csv:calls.csv: 1 call, 0 of them are decided otherwise

changed: x.X.M: key="{b}" limit=1 per=1m; was key="{a}" limit=1 per=1m
not compared: x.X.M: key="{b}" needs a column key or "{b}"
`
	if "\n"+stdout != want {
		t.Errorf("printed\n%s\nexpected%s", stdout, want)
	}
	write(t, dir, "calls.csv", "timestamp\n1\n")
	write(t, dir, "x.go", source)
	expect(t, 0, dir, against...) // the rule is not compared, but has not changed
}

func TestSimulateAgainstUsage(t *testing.T) {
	dir := module(t, "x.go", limited, "calls.csv", "1,a\n", "none.json", "[]", "two.json", "[]\n[]\n", "more.json", "[] x", "null.json", "null", "marked.json", "\ufeff[]\n", "wrong.json", `[{"method": "x.X.M", "rule": "r", "limit": 1, "window": "1y"}]`)
	list, _ := expect(t, 0, dir, "-list", "-json")
	write(t, dir, "list.json", list)
	for _, test := range []struct {
		status int
		want   string
		args   []string
	}{
		{2, "-check goes with -against", []string{"-check"}},
		{2, "-against compares the rules of packages or of -rules", []string{"-against", "list.json", "-rule", "limit=1 per=1m"}},
		{2, "-against compares the rules of packages or of -rules", []string{"-against", "list.json", "-compare", "limit=1 per=1m"}},
		{2, `-method is "P"; expected x.X.M, x.X.N, x.X.O`, []string{"-against", "list.json", "-method", "P"}},
		{2, `load is "steady"`, []string{"-against", "list.json", "-load", "steady"}},
		{1, "calls.csv: the rules are of several methods; write a column method, or choose one with -method: x.X.M, x.X.N, x.X.O", []string{"-against", "list.json", "-load", "csv:calls.csv"}},
		{1, "none.csv: no such file or directory", []string{"-against", "list.json", "-load", "csv:none.csv"}},
		{1, "gone.json: no such file or directory", []string{"-against", "gone.json"}},
		{1, "x.go: expected the output of ratelimit -list -json", []string{"-against", "x.go"}},
		{1, "two.json: found text after the list; write one list, of all packages", []string{"-against", "two.json"}},
		{1, "more.json: found text after the list; write one list, of all packages", []string{"-against", "list.json", "-rules", "more.json"}},
		{1, "null.json: found null; expected the output of ratelimit -list -json", []string{"-against", "null.json"}},
		{1, "found no rules", []string{"-against", "marked.json", "-rules", "marked.json"}},
		{1, `wrong.json: the rule "limit=1 per=1y" of "x.X.M": `, []string{"-against", "wrong.json"}},
		{1, "found no rules", []string{"-against", "none.json", "-rules", "none.json"}},
	} {
		stdout, stderr := expect(t, test.status, dir, append([]string{"simulate"}, test.args...)...)
		if stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.want) {
			t.Errorf("%v printed %q and %q; expected %s", test.args, stdout, stderr, test.want)
		}
	}
}
