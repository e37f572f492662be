package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
)

const limited = `package x

type X interface {
	//ratelimit:rule key="{a}" limit=2 per=1m
	//ratelimit:rule limit=3 cron="@hourly" cost=2 mode=shadow
	M(a string) error

	//ratelimit:rule limit=len(a) per=1m
	N(a string) error

	//ratelimit:rule limit=1 per=1m distinct="{a}"
	O(a string) error
}
`

// The rules of a package, of a file, and of flags do the same.
func TestSimulateSources(t *testing.T) {
	dir := module(t, "x.go", limited)
	list, _ := expect(t, 0, dir, "-list", "-json")
	write(t, dir, "rules.json", list)
	load := []string{"simulate", "-load", "poisson:5/m", "-keys", "2"}
	const first, second = `key="{a}" limit=2 per=1m`, `limit=3 cron=@hourly cost=2 mode=shadow`
	want, _ := expect(t, 0, dir, append(load, "-rule", first, "-rule", second)...)
	for _, args := range [][]string{{"-method", "M", "."}, {"-method=x.X.M"}, {"-rules", "rules.json", "-method", "X.M"}} {
		got, stderr := expect(t, 0, dir, append(load, args...)...)
		if squeezed(got) != squeezed(want) || stderr != "" {
			t.Errorf("%v printed\n%s%s\nexpected\n%s", args, got, stderr, want)
		}
	}
	got, _ := expect(t, 0, dir, append(load, "-rule", `limit=9 per=1m when="vip" settle="n" cost="len(a)" pause="wait"`)...)
	if !strings.Contains(got, "\nnot simulated: cost=, pause=, settle=, when= of limit=9") {
		t.Errorf("printed\n%s", got)
	}
	got, _ = expect(t, 0, dir, append(load, "-rule", `limit=9 every=1mo anchor="c.Since"`, "-rule", "limit=9 every=2w")...)
	if !strings.Contains(got, "\nnot simulated: anchor= of limit=9 every=1mo") || strings.Contains(got, "of limit=9 every=2w") {
		t.Errorf("printed\n%s", got)
	}
	got, _ = expect(t, 0, dir, append(load, "-rule", first, "-compare", second, "-json")...)
	var results []struct{ Rules []struct{ Rule string } }
	if err := json.Unmarshal([]byte(got), &results); err != nil || len(results) != 2 || results[1].Rules[0].Rule != second {
		t.Errorf("%v\n%s", err, got)
	}
}

// squeezed returns a table without the spaces of its layout.
func squeezed(table string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(table, `cron="@hourly"`, "cron=@hourly")), " ")
}

// The name of a rule chooses it among those of a method.
func TestSimulateRuleByName(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "list.json", `[{"method": "x.X.M", "rule": "fast", "limit": 1, "window": "1s"}, {"method": "x.X.M", "rule": "slow", "limit": 7, "window": "1h"},
		{"method": "x.X.N", "rule": "other", "limit": 3, "window": "1h"}]`)
	stdout, _ := expect(t, 0, dir, "simulate", "-rules", "list.json", "-rule", "slow", "-load", "constant:1/s")
	if !strings.Contains(stdout, "limit=7 per=1h") || strings.Contains(stdout, "limit=1") || strings.Contains(stdout, "limit=3") {
		t.Errorf("printed %s", stdout)
	}
}

func TestSimulateUsage(t *testing.T) {
	dir := module(t, "x.go", limited)
	write(t, dir, "list.json", `[{"method": "x.X.M", "limit": 1, "window": "1y", "algorithm": "fixed-window"}]`)
	const rule = "-rule=limit=1 per=1m"
	for want, args := range map[string][]string{
		"flag provided but not defined: -nonsense":                             {"-nonsense"},
		`the rule "limit=1": per: `:                                            {"-rule", "limit=1"},
		`the rule "per=1m": a rule needs limit=`:                               {"-rule", "per=1m"},
		`the rule "lim=1 per=1m": unknown argument "lim"; did you mean limit?`: {"-rule", "lim=1 per=1m"},
		`the rule "limit=x per=y": per is "y"; expected a duration`:            {rule, "-compare", "limit=x per=y"},
		`the rule "limit=\"a*b\" per=1m": the limit is an expression, whose values are not in the load; write -rule 'limit=100 per=1m', or another number`: {"-rule", `limit="a*b" per=1m`},
		`the limit is an expression, whose values are not in the load; write -rule 'limit=100 per=1m' -rule 'limit=5 per=1h', or another`:                  {"-rule", "limit=2*n per=1m", "-rule", "limit=5 per=1h"},
		`the rule "limit=\"len(a)\" per=1m": the limit is an expression, whose values are not in the load; write -rule 'limit=100 per=1m'`:                 {"-method", "N"},
		`choose one method with -method: x.X.M, x.X.N, x.X.O; see`:                                                                                         {},
		`-method is "P"; expected x.X.M, x.X.N, x.X.O; see`:                                                                                                {"-method", "P", "."},
		`the rule "limit=1 per=1y algorithm=fixed-window": unknown unit "y"`:                                                                               {"-rules", "list.json"},
		"found more than one of these":                            {rule, "-rules", "list.json"},
		"found more than one of these; see ratelimit simulate -h": {rule, "."},
		"not of -rule":                          {rule, "-method", "M"},
		"found no rule with the name fast; see": {"-rule", "fast"},
		"-keys is 0; expected at least 1":       {rule, "-keys", "0"},
		`found "-check" among the packages; flags come before packages; see ratelimit simulate -h`: {"./...", "-check"},
		"-title goes with -svg":                                                   {rule, "-title", "x"},
		`load is "steady"; expected constant:100/s`:                               {rule, "-load", "steady"},
		`-load is "csv:"; write the name of a file, as in csv:calls.csv`:          {rule, "-load", "csv:"},
		"-keys is not for a csv":                                                  {rule, "-load", "csv:x", "-keys", "2"},
		`invalid value "1" for flag -for: -for is "1" without a unit`:             {rule, "-for", "1"},
		`invalid value "noon" for flag -start: expected a time such as 2026-03-0`: {rule, "-start", "noon"},
	} {
		stdout, stderr := expect(t, 2, dir, append([]string{"simulate"}, args...)...)
		if stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v printed %q and %q; expected %s", args, stdout, stderr, want)
		}
	}
	for want, args := range map[string][]string{
		"none.csv: no such file or directory\n":                {rule, "-load", "csv:none.csv"},
		"x.go: line 1: the timestamp is ":                      {rule, "-load", "csv:x.go"},
		"none.json: no such file or directory\n":               {"-rules", "none.json"},
		"x.go: expected the output of ratelimit -list -json: ": {"-rules", "x.go"},
		"./none: no such file or directory":                    {"./none"},
		"none/x.svg: no such file or directory\n":              {rule, "-svg", "none/x.svg"},
		"counts distinct members, which calls of this load lack; use -load csv:FILE, with a member in the fourth field of each line\n": {"-method", "O"},
		`empty.csv: line 1: the key is missing; the rule "key={a} limit=1 per=1m" needs one in each line`:                              {"-rule", "key={a} limit=1 per=1m", "-load", "csv:empty.csv"},
		"costs.csv: line 3: the cost is missing; the rule ":                                                                            {"-rule", `limit=9 per=1m cost="len(a)"`, "-load", "csv:costs.csv"},
		"wrong.csv: line 2: the cost is \"many\"; expected an integer of at least 0":                                                   {rule, "-load", "csv:wrong.csv"},
		"found no rules\n":                          {"./bare"},
		"found 256 rules; a call has at most 255\n": slices.Repeat([]string{rule}, 256),
	} {
		write(t, dir, "empty.csv", "1\n")
		write(t, dir, "costs.csv", "timestamp,key,cost\n1,a,2\n2,a\n")
		write(t, dir, "wrong.csv", "1,a,2\n2,a,many\n")
		write(t, dir, "x.go", limited)
		write(t, dir, "bare/x.go", "//go:build ignore\n\n"+limited)
		write(t, dir, "bare/y.go", "package x\n")
		stdout, stderr := expect(t, 1, dir, append([]string{"simulate"}, args...)...)
		if stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v printed %q and %q; expected %s", args, stdout, stderr, want)
		}
	}
	stdout, stderr := expect(t, 0, dir, "simulate", "-h")
	if !strings.Contains(stdout, "\nloads:\n") || !strings.Contains(stdout, "-compare") || stderr != "" {
		t.Errorf("-h printed %q and %q", stdout, stderr)
	}
}

// A rule that -list prints can be read again as the same rule, whichever arguments it has.
func TestListedRulesReadBack(t *testing.T) {
	texts := []string{
		"per=1m", `per=1d12h key="{a}\t|"`, "per=1m block=1d12h wait=45s refund=error on-error=local", "per=1m cost=3",
		"per=1m mode=trigger", "per=1m algorithm=token-bucket burst=20 wait=2s queue=7", "per=1m algorithm=leaky-bucket prepay",
		"per=1m algorithm=token-bucket warmup=5s", "per=1m algorithm=sliding-counter slices=6 scope=instance",
		"cron=@daily tz=Asia/Shanghai", `cron="0  0 * * *"`, `every=3mo anchor="date('2026-01-31')" tz=Asia/Tokyo`, `cost="len(a)" per=1m when="len(a) > 3"`, "algorithm=fixed-window per=1500us",
		`distinct="{a}" per=1m`, "lease=1s hash=false report=false per=1m", `cost="len(a)" settle="len(a) * 2" per=1m`, `per=1m pause="retryAfter(err)"`,
		"algorithm=concurrency per=1m hold=rows",
	}
	for _, arg := range annotations.LookUp("rule").Args {
		has := func(text string) bool { return strings.Contains(" "+text, " "+arg.Name) }
		if !slices.Contains([]string{"name", "limit", "message"}, arg.Name) && !slices.ContainsFunc(texts, has) {
			t.Errorf("no text has %s", arg.Name)
		}
	}
	var rules []string
	for _, written := range texts {
		rules = append(rules, "limit=1_000 "+written)
	}
	for i, row := range rowsWith(t, rules) {
		written := texts[i]
		_, want, err := generator.ParseRule(rules[i])
		if err != nil {
			t.Fatal(err)
		}
		_, got, err := generator.ParseRule(row.Directive())
		want.Cron = strings.Join(strings.Fields(want.Cron), " ")
		if err != nil || got != want {
			t.Errorf("%s is listed as %s, which is %+v, error %v; expected %+v", written, row.Directive(), got, err, want)
		}
		want.Name = row.Rule
		if rule, err := row.AsRule(); err != nil || rule != want {
			t.Errorf("%s is listed as %s, which a tool reads as %+v, error %v; expected %+v", written, row.Directive(), rule, err, want)
		}
	}
}
