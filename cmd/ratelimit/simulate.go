package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/simulate"
)

const simulateUsage = `usage: ratelimit simulate [flags] [packages]

Prints which calls of a load the rules would refuse, by rule and key. The real
limiter decides each call, in virtual time: a day takes seconds.

The rules are those of the packages, of -rules, or of -rule. A rule with a key
counts each key of the load separately, whatever the expression of its key is.
A call costs the number in the rule's cost=, or else the cost in the load, or 1.
A cost of 0 takes nothing from the rule, which does not refuse the call then.
Calls wait if the rule has wait=. A rule with when= applies to every call, and
settle= and pause= are ignored, as is a cost= with an expression if the load has
no costs, and anchor= if it has no anchors: the output says so. The windows of
every= then count from the first call of the key.

loads:
  constant:100/s   evenly spaced calls
  poisson:100/s    calls of many independent callers, 100 a second on average
  burst:50/10s     50 calls at once, every 10 seconds
  daily:100/s      poisson, with a rate between 180 at 3 pm and 20 at 3 am in the
                   time zone of -start
  csv:calls.csv    lines of timestamp,key,cost,member,anchor. The timestamp and
                   the anchor are in RFC 3339 or in seconds since 1970. A key, a
                   cost and a member are needed by rules with a key, with an
                   expression as cost=, and with distinct=, which counts the
                   members. The windows of rules with every= count from the
                   anchor, or else from the first call of the key. A first line
                   with the word timestamp names the columns, which then come in
                   any order
  poisson:2/s+burst:50/10s    both loads together

With -against, the rules of two commits decide each call, and the output says
which calls they decide otherwise, by rule, with the first call of each kind.
All counts start from nothing. All methods are compared: if there are several,
the csv needs a column method, with values such as SendCode or
shop.Sender.SendCode. Its lines must be sorted by time. A rule takes what it
needs from the column key, cost, member, limit, when or anchor, or from a column
whose name is the text of its expression, such as {phone} or perDay(plan). A
rule that lacks a column is not compared. Neither are rules of a method whose
keys or expressions differ, or have changed, if they would share a column. A
rule without cost= charges 1. Name the same packages at both commits: rules of
others count as gone. -check exits with 1 if a call is decided otherwise, or if
a rule that has changed is not compared.

examples:
  ratelimit simulate -rule 'limit=10 per=1s' -load poisson:12/s
  ratelimit simulate -rule 'limit=10 per=1s' -load poisson:12/s -svg rate.svg \
      -compare 'limit=10 per=1s algorithm=token-bucket'
  ratelimit simulate -method SendCode -load csv:calls.csv ./examples/sms
  ratelimit simulate -rules rules.json -load daily:5/s -keys 100 -json
  ratelimit simulate -against before.json -check -load csv:calls.csv ./...

exit status:
  0   the load was simulated
  1   there are errors in the source, or a file cannot be read or written, or,
      with -check, a call is decided otherwise or a changed rule is not compared
  2   the command line is wrong

flags:
`

// simulation is a parsed command line of ratelimit simulate.
type simulation struct {
	*command
	rules, compared []string // arguments of rule directives
	file, method    string
	named           []string // the names of the rules to simulate; all if it is empty
	against         string   // a file with the rules of another commit
	load            string
	span            simulate.Span
	svg, title      string
}

// run runs the simulation with the arguments after the word simulate.
func (s *simulation) run(ctx context.Context, args []string) error {
	if err := s.parse(args); err != nil {
		return err
	}
	if s.against != "" {
		return s.runAgainst(ctx)
	}
	sets, err := s.ruleSets(ctx)
	if err != nil {
		return err
	}
	load, err := s.newLoad()
	if err != nil {
		return err
	}
	var results []*simulate.Result
	for _, rules := range sets {
		result, err := simulate.Run(ctx, rules, load)
		if err != nil {
			return err
		}
		results = append(results, result)
	}
	return s.report(results)
}

// newLoad returns the load that the flags ask for.
func (s *simulation) newLoad() (*simulate.Load, error) {
	if file, ok := strings.CutPrefix(s.load, "csv:"); ok {
		return simulate.OpenCSV(file, s.span)
	}
	load, err := simulate.NewLoad(s.load, s.span)
	if err != nil {
		return nil, usageError{err}
	}
	return load, nil
}

// parse reads the command line. If it has printed help, it returns flag.ErrHelp.
func (s *simulation) parse(args []string) error {
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	flags.Func("rule", "a `rule`, as in a directive: 'limit=10 per=1m', or the name of one of the packages; may be given again", s.addRule)
	flags.Func("compare", "a `rule` of a second set, for the same load; may be given again", appendTo(&s.compared))
	flags.StringVar(&s.against, "against", "", "print what the rules decide otherwise than those of this `file`, the output of ratelimit -list -json at another commit")
	flags.BoolVar(&s.check, "check", false, "with -against: exit with 1 if a call is decided otherwise, or if a rule that has changed is not compared")
	flags.StringVar(&s.file, "rules", "", "a `file` with the output of ratelimit -list -json")
	flags.StringVar(&s.method, "method", "", "the `method` whose rules to simulate, if there are several; its last part is enough")
	flags.StringVar(&s.load, "load", "constant:100/s", "the `load`")
	flags.Func("for", "the `duration` of the load, such as 10m; 10m if absent, 1d for daily, and all of a csv", s.setLength)
	flags.Func("start", "the `time` at which the load starts, in RFC 3339; 2026-01-01T00:00:00Z if absent, and the first call of a csv", s.setStart)
	flags.Func("runs", "how long a call runs, for rules with algorithm=concurrency: a `duration`; 1s if absent", s.setRuns)
	flags.IntVar(&s.span.Keys, "keys", 1, "how many keys the calls have: `n`, all equally likely; a csv has its own")
	flags.Uint64Var(&s.span.Seed, "seed", 1, "the seed of the random numbers")
	flags.BoolVar(&s.json, "json", false, "print JSON, with all keys that were refused and the timeline")
	flags.StringVar(&s.svg, "svg", "", "draw a picture to this `file`: what was admitted and refused over time, and the budget left")
	flags.StringVar(&s.title, "title", "", "the `text` above the picture")
	flags.StringVar(&s.config.Tags, "tags", "", "build `tags` of the packages, separated by commas")
	if err := s.parseFlags(flags, simulateUsage, args); err != nil {
		return err
	}
	byRule, byFile, byPackages := len(s.rules) > 0, s.file != "", flags.NArg() > 0
	switch {
	case byRule && byFile, byRule && byPackages, byFile && byPackages:
		return usageErrorf("rules come from -rule, from -rules or from packages; found more than one of these")
	case s.method != "" && byRule:
		return usageErrorf("-method chooses among the rules of packages or of -rules, not of -rule")
	case s.span.Keys < 1:
		return usageErrorf("-keys is %d; expected at least 1", s.span.Keys)
	case s.span.Keys > 1 && strings.HasPrefix(s.load, "csv:"):
		return usageErrorf("-keys is not for a csv, which has its own keys")
	case s.load == "csv:":
		return usageErrorf("-load is %q; write the name of a file, as in csv:calls.csv", s.load)
	case s.title != "" && s.svg == "":
		return usageErrorf("-title goes with -svg")
	case s.against != "" && (byRule || len(s.compared) > 0 || s.svg != ""):
		return usageErrorf("-against compares the rules of packages or of -rules; -rule 'limit=…', -compare and -svg do not go with it")
	case s.check && s.against == "":
		return usageErrorf("-check goes with -against")
	}
	return nil
}

// addRule adds a rule, or the name of one.
func (s *simulation) addRule(value string) error {
	if strings.Contains(value, "=") {
		s.rules = append(s.rules, value)
	} else {
		s.named = append(s.named, value)
	}
	return nil
}

// appendTo returns the setter of a flag that may be given several times.
func appendTo(list *[]string) func(string) error {
	return func(value string) error {
		*list = append(*list, value)
		return nil
	}
}

func (s *simulation) setLength(text string) (err error) {
	s.span.Length, _, err = period.Parse("-for", text)
	return err
}

func (s *simulation) setRuns(text string) (err error) {
	s.span.Runs, _, err = period.Parse("-runs", text)
	return err
}

func (s *simulation) setStart(text string) (err error) {
	if s.span.Start, err = time.Parse(time.RFC3339, text); err != nil || s.span.Start.Unix() < 0 {
		return errors.New("expected a time such as 2026-03-02T09:00:00Z")
	}
	return nil
}

// report prints the results and draws the picture.
func (s *simulation) report(results []*simulate.Result) error {
	if s.svg != "" {
		if err := os.WriteFile(s.svg, simulate.Draw(s.title, results...), 0o666); err != nil {
			return err
		}
	}
	if s.json {
		return encode(s.stdout, results, "\t")
	}
	for i, r := range results {
		if i > 0 {
			fmt.Fprintln(s.stdout)
		}
		if err := r.PrintTable(s.stdout); err != nil {
			return err
		}
	}
	return nil
}
